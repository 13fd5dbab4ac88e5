"""The load_inline and load that the recorder falls back to: they compile nothing, and say what they were given."""
import os

from .. import cuda

imported_by = os.getpid()
cuda.is_available()  # as PyTorch's does


class Module:
    def __init__(self, given):
        self.given = given


def load_inline(name, cpp_sources, cuda_sources=None, functions=None, **options):
    if "cannot be compiled at all" in str(cpp_sources):
        raise RuntimeError(f"Error building extension '{name}': [1/2] c++ -c main.cpp\n" + "a long command " * 40 + "\nmain.cpp:7:1: error: it cannot\n"
                           "ninja: build stopped: an error")
    return Module(dict(options, name=name, cpp_sources=cpp_sources, cuda_sources=cuda_sources, functions=functions))


def load(name, sources, *rest, **options):
    return Module(dict(options, name=name, sources=sources, rest=rest))
