"""The driver, streams and graphs, and where memory comes from."""
import contextlib
import ctypes
import os

driver = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libcuda.so.1"))
# What the driver says of a capture, in its words.
CAPTURE = {900: "operation not permitted when stream is capturing", 904: "capturing stream has unjoined work",
           905: "dependency created on uncaptured work in another stream"}


def call(name, *arguments):
    arguments = [ctypes.c_void_p(each.cuda_stream) if isinstance(each, Stream) else each for each in arguments]
    result = getattr(driver, name)(*arguments)
    if result in CAPTURE:
        raise RuntimeError(f"CUDA error: {CAPTURE[result]}")
    if result != 0:
        raise RuntimeError(f"CUDA error: {result} in {name}")


started_by = None  # the process that has asked whether there is a GPU, for which PyTorch starts CUDA


def is_available():
    global started_by
    started_by = os.getpid()
    return True


class Stream:
    """handle 0: the default stream."""

    def __init__(self, handle=None):
        made = ctypes.c_void_p(handle)
        if handle is None:
            call("cuStreamCreate", ctypes.byref(made), 1)
        self.cuda_stream = made.value or 0

    def synchronize(self):
        call("cuStreamSynchronize", self)

    def record_event(self):
        made = Event()
        made.record(self)
        return made

    def wait_event(self, event):
        call("cuStreamWaitEvent", self, event.handle, 0)

    def wait_stream(self, other):
        self.wait_event(other.record_event())


class Event:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(self.handle), 2)

    def record(self, stream=None):
        call("cuEventRecord", self.handle, stream or current_stream())


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


def is_current_stream_capturing():
    status = ctypes.c_int()
    call("cuStreamIsCapturing", current_stream(), ctypes.byref(status))
    return status.value != 0


class CUDAGraph:
    def __init__(self, keep_graph=False):
        self.keep_graph, self.handle = keep_graph, ctypes.c_void_p()

    def raw_cuda_graph(self):
        assert self.keep_graph
        return self.handle.value

    def replay(self):
        if is_current_stream_capturing():
            raise RuntimeError("Cannot prepare for replay during capturing stage.")
        made = ctypes.c_void_p()
        call("cuGraphInstantiateWithFlags", ctypes.byref(made), self.handle, ctypes.c_uint64(0))
        call("cuGraphLaunch", made, current_stream())


@contextlib.contextmanager
def graph(of, stream=None, capture_error_mode="global"):
    assert capture_error_mode == ("thread_local" if stream else "global")  # who records names a stream
    stream = stream or Stream()
    call("cuStreamBeginCapture_v2", stream, 1)
    streams.append(stream)
    try:
        yield
    except RuntimeError as error:
        if CAPTURE[900] in str(error):  # the capture has become invalid, which is said when it ends
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")
        raise
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
        at = cls.give(count, 0, current_stream().cuda_stream)
        if at is None:
            raise RuntimeError("CUDA out of memory.")
        return at

    @classmethod
    def release(cls, at, count):
        cls.take(at, count, 0, None)
