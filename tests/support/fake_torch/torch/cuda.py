"""The driver, streams and graphs, and where memory comes from."""
import contextlib
import ctypes
import os

driver = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libcuda.so.1"))
CAPTURE_UNSUPPORTED = 900


def call(name, *arguments):
    arguments = [ctypes.c_void_p(each.cuda_stream) if isinstance(each, Stream) else each for each in arguments]
    result = getattr(driver, name)(*arguments)
    if result == CAPTURE_UNSUPPORTED:
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
    if result != 0:
        raise RuntimeError(f"CUDA error: {result} in {name}")


class Stream:
    """handle 0: the default stream."""

    def __init__(self, handle=None):
        made = ctypes.c_void_p(handle)
        if handle is None:
            call("cuStreamCreate", ctypes.byref(made), 1)
        self.cuda_stream = made.value or 0

    def synchronize(self):
        call("cuStreamSynchronize", self)


streams = [Stream(0)]


def current_stream():
    return streams[-1]


@contextlib.contextmanager
def stream(other):
    streams.append(other)
    try:
        yield
    finally:
        streams.pop()


def synchronize():
    call("cuStreamSynchronize", current_stream())


class CUDAGraph:
    def __init__(self, keep_graph):
        assert keep_graph
        self.handle = ctypes.c_void_p()

    def raw_cuda_graph(self):
        return self.handle.value

    def replay(self):
        made = ctypes.c_void_p()
        call("cuGraphInstantiateWithFlags", ctypes.byref(made), self.handle, ctypes.c_uint64(0))
        call("cuGraphLaunch", made, None)


@contextlib.contextmanager
def graph(of, stream, capture_error_mode):
    assert capture_error_mode == "thread_local"
    call("cuStreamBeginCapture_v2", stream, 1)
    streams.append(stream)
    try:
        yield
    finally:
        streams.pop()
        call("cuStreamEndCapture", stream, ctypes.byref(of.handle))


class memory:
    give = take = None

    class CUDAPluggableAllocator:
        def __init__(self, path, give, take):
            library = ctypes.CDLL(path)
            self.give, self.take = getattr(library, give), getattr(library, take)
            self.give.restype = ctypes.c_void_p
            self.give.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
            self.take.restype = None
            self.take.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]

    @classmethod
    def change_current_allocator(cls, allocator):
        cls.give, cls.take = allocator.give, allocator.take

    @classmethod
    def allocate(cls, count):
        at = cls.give(count, 0, None)
        if at is None:
            raise RuntimeError("CUDA out of memory.")
        return at

    @classmethod
    def release(cls, at, count):
        cls.take(at, count, 0, None)
