import os
import types


def compile_module_from_src(src, name=None, **_):
    return types.SimpleNamespace(src=src, name=name, made_by=os.getpid())


class CudaUtils:
    def __init__(self):
        self.module = compile_module_from_src(src="calls the driver", name="cuda_utils")
