"""Stands in for PyTorch where a candidate is recorded (executor/recorder), for tests without a GPU.

It has what the recorder asks of PyTorch, and a few operations for candidates, all on the driver of
tests/support/fake_capture, which lies beside this file. Tensors have one dimension or are made of
one; what looks at values ends a capture as it does on a GPU. launch() launches a kernel of that
driver's, whose image is given to it when the kernel is first named.
"""
import contextlib
import ctypes
import struct

from . import cuda, nn  # noqa: F401
from .cuda import call, current_stream

__version__ = "0.0-fake"


class Dtype:
    def __init__(self, name, code, size):
        self.name, self.code, self.size, self.is_floating_point = name, code, size, code in "efd"

    def __repr__(self):
        return f"torch.{self.name}"


float32, float64, float16, bfloat16 = Dtype("float32", "f", 4), Dtype("float64", "d", 8), Dtype("float16", "e", 2), Dtype("bfloat16", "H", 2)
int8, uint8, int32, int64, bool = Dtype("int8", "b", 1), Dtype("uint8", "B", 1), Dtype("int32", "i", 4), Dtype("int64", "q", 8), Dtype("bool", "?", 1)


class device:
    def __init__(self, type, index=None):
        self.type, self.index = type, index

    def __repr__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


dtype = Dtype  # as PyTorch names its class


class Memory:
    """What an allocator has given, until nobody has it any more."""

    at = None

    def __init__(self, count):
        self.count = count
        self.at = cuda.memory.allocate(count)

    def __del__(self):
        if self.at is not None:
            cuda.memory.release(self.at, self.count)


class Tensor:
    is_cuda = True
    device = device("cuda", 0)

    def __init__(self, shape, dtype, memory, offset=0):
        self.shape, self.dtype, self.memory, self.offset = tuple(shape), dtype, memory, offset

    def data_ptr(self):
        return self.memory.at + self.offset

    def element_size(self):
        return self.dtype.size

    def numel(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def stride(self):
        steps = [1]
        for extent in self.shape[:0:-1]:
            steps.insert(0, steps[0] * extent)
        return tuple(steps) if self.shape else ()

    def view(self, *shape):
        shape = tuple(shape[0]) if isinstance(shape[0], list) else shape
        if -1 not in shape and Tensor(shape, self.dtype, None).numel() != self.numel():
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {self.numel()}")
        return Tensor([self.numel()] if shape == (-1,) else shape, self.dtype, self.memory, self.offset)

    def sum(self, dtype=None):
        return tensor([sum(self.tolist())], dtype or self.dtype)

    def max(self, dim, keepdim):
        assert not keepdim
        return self[:1], self[1:2]

    def contiguous(self):
        return self

    def cuda(self):
        return self

    def __getitem__(self, part):
        begin, end, step = part.indices(self.numel())
        assert step == 1
        return Tensor([max(0, end - begin)], self.dtype, self.memory, self.offset + begin * self.dtype.size)

    def tolist(self):
        call("cuStreamSynchronize", current_stream())
        data = ctypes.string_at(self.data_ptr(), self.numel() * self.dtype.size)
        return list(struct.unpack(f"<{self.numel()}{self.dtype.code}", data))

    def item(self):
        return self.tolist()[0]

    def __index__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def write(self, values):
        data = struct.pack(f"<{self.numel()}{self.dtype.code}", *values)
        call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(self.data_ptr()), data, ctypes.c_size_t(len(data)), current_stream())
        return self

    def zero_(self):
        call("cuMemsetD8Async", ctypes.c_uint64(self.data_ptr()), ctypes.c_ubyte(0), ctypes.c_size_t(self.numel() * self.dtype.size), current_stream())
        return self

    def copy_(self, other):
        assert other.dtype is self.dtype and other.numel() == self.numel()
        call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(self.data_ptr()), ctypes.c_uint64(other.data_ptr()),
             ctypes.c_size_t(self.numel() * self.dtype.size), current_stream())
        return self

    def to(self, dtype, copy=False):
        if dtype is self.dtype:
            return self.clone() if copy else self
        assert dtype is float64
        if self.dtype is not float32:  # on the host, so not while launches are recorded
            return empty(self.shape, dtype=dtype).write(self.tolist())
        made = empty(self.shape, dtype=dtype)
        launch("fk_double", self, made, self.numel())
        return made

    def __mul__(self, number):
        assert self.dtype is float64
        made = empty(self.shape, dtype=float64)
        launch("fk_times", self, made, self.numel(), number)
        return made

    def abs(self):
        assert self.dtype is float64
        made = empty(self.shape, dtype=float64)
        launch("fk_magnitude", self, made, self.numel())
        return made

    def clone(self):
        return empty(self.shape, dtype=self.dtype).copy_(self)

    def normal_(self, mean, deviation):
        return self.write([mean + deviation * (i % 7 - 3) / 3 for i in range(self.numel())])


def empty(shape, dtype=None, device="cuda", requires_grad=False):
    assert getattr(device, "type", device) in ("cuda", None) and not requires_grad
    made = Tensor([shape] if isinstance(shape, int) else shape, dtype or default[0], None)
    made.memory = Memory(made.numel() * made.dtype.size)
    return made


def empty_like(other, dtype=None, device=None, requires_grad=False):
    return empty(other.shape, dtype or other.dtype, device, requires_grad)


def zeros(shape, dtype=None, device="cuda", requires_grad=False):
    return empty(shape, dtype, device, requires_grad).zero_()


def full(shape, value, dtype=None, device="cuda", requires_grad=False):
    made = empty(shape, dtype, device, requires_grad)
    return made.write([value] * made.numel())


def cat(tensors, dim):
    assert dim == 0
    return tensor([value for each in tensors for value in each.tolist()], tensors[0].dtype)


def tensor(values, dtype=None, device="cuda"):
    return empty(len(values), dtype, device).write(values)


default = [float32]


def set_default_dtype(dtype):
    default[0] = dtype


@contextlib.contextmanager
def no_grad():
    yield


def cubin(kernel, variable=None):
    """What the two drivers of the tests take for code: a cubin for sm_90 with a kernel and a variable of four bytes."""
    text, names = f".text.{kernel}", "\0.names\0.comment\0.nv.global\0.symtab\0"
    names += f"{text}\0" + (f"{variable}\0" if variable else "")
    place = lambda name: names.index(name)
    comment, count = f"fake:{kernel} \0", 3 if variable else 2
    symbols = bytes(24) + struct.pack("<IBBHQQ", place(text) + 6, 0x12, 0, 3, 0, 16)
    symbols += struct.pack("<IBBHQQ", place(f"\0{variable}\0") + 1, 0x01, 0, 4, 0, 4) if variable else b""
    parts = [names.encode(), comment.encode(), bytes(16), symbols]
    at = [64 + sum(map(len, parts[:i])) for i in range(5)]
    section = lambda name, kind, flags, at, size, link=0, entry=0: struct.pack("<IIQQQQIIQQ", place(name), kind, flags, 0, at, size, link, 0, 1, entry)
    sections = [bytes(64), section(".names", 3, 0, at[0], len(parts[0])), section(".comment", 1, 0, at[1], len(parts[1])),
                section(text, 1, 6, at[2], 16), section(".nv.global", 8, 3, at[4], 4 if variable else 0),
                section(".symtab", 2, 0, at[3], 24 * count, link=1, entry=24)]
    head = b"\x7fELF\2\1\1\x41\x08" + bytes(7) + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at[4], 90 << 8, 64, 0, 0, 64, len(sections), 1)
    return head + b"".join(parts) + b"".join(sections)


def fat_binary(data, architecture=90, kind=2):
    entry = struct.pack("<HHIQIIIIIIQQQ", kind, 0x101, 64, len(data), 0, 0, 0, architecture, 0, 0, 0x11, 0, 0) + data
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(entry)) + entry


kernels = {}


def launch(name, *arguments, grid=(8, 1, 1), block=(256, 1, 1), smem=0, image=None, early=False):
    """Arguments: tensors, int for an int, float for a float. early: it may begin before what is before it has ended."""
    if early:
        call("fakeNextIsEarly", current_stream())
    if name not in kernels:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(module), image or fat_binary(cubin(name)))
        call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        kernels[name] = function
    values = [ctypes.c_uint64(a.data_ptr()) if isinstance(a, Tensor) else ctypes.c_int(a) if isinstance(a, int) else ctypes.c_float(a) for a in arguments]
    parameters = (ctypes.c_void_p * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
    call("cuLaunchKernel", kernels[name], *[ctypes.c_uint(each) for each in (*grid, *block, smem)], current_stream(), parameters, None)


def nothing():
    """A node of a graph without work."""
    call("fakeEmptyNode", current_stream())


def host_function():
    """A call of the host's, which a stream makes in its turn."""
    call("cuLaunchHostFunc", current_stream(), HOST, None)


HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
