import functools
import os


@functools.lru_cache
def triton_key():
    return os.getpid()
