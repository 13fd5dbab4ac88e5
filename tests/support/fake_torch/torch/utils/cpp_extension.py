"""The load_inline that the recorder falls back to: it compiles nothing, and says what it was given."""
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
