# What our headers do not do for goes to PyTorch's own load_inline as it was given.
import os
import torch
from torch.utils.cpp_extension import load_inline

F = "torch::Tensor f(torch::Tensor x);"
BODY = "torch::Tensor f(torch::Tensor x) { return x; }"
CASES = [
    dict(name="unknown", cpp_sources=F, cuda_sources="torch::Tensor f(torch::Tensor x) { return at::a_function_of_pytorch(x); }", functions=["f"]),
    dict(name="pybind", cpp_sources=BODY + "\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"f\", &f, py::call_guard<int>()); }"),
    dict(name="both", cpp_sources=BODY + "\n#ifdef BIND\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"f\", &f); }\n#endif", functions="f"),
    dict(name="named", cpp_sources=F, cuda_sources=BODY + "\nPYBIND11_MODULE(other, m) { m.def(\"f\", &f); }", functions=["f"]),
    dict(name="pasted", cpp_sources="#define DECLARE(a, b) torch::Tensor a##b(torch::Tensor x)\nDECLARE(at_a_, time_of_pytorch);", functions=["at_a_time_of_pytorch"]),
    dict(name="header", cpp_sources="#include <declared.h>", functions=["f"], extra_include_paths=["written"]),
    dict(name="flag", cpp_sources="EVERYTHING", functions=["f"], extra_cflags=["-O2", "-DEVERYTHING="]),
    dict(name="endless", cpp_sources="wrong f(), g();", cuda_sources=BODY, functions=["f", "g"], extra_cuda_cflags=["--endless"]),
    dict(name="library", cpp_sources=BODY + "\nTORCH_LIBRARY(library, m) { m.def(\"f\", &f); }"),
    dict(name="undefined", cpp_sources=F, functions="f"),
    dict(name="types", cpp_sources="at::Generator g(at::Generator x);", functions="g"),
    dict(name="folder", cpp_sources=BODY, functions="f", build_directory="/nowhere"),
]
for case in CASES:
    made = load_inline(**case)
    given = {key: value for key, value in made.given.items() if value is not None}
    assert given == case, (given, case)
for architectures, name in (("9.0;Hopper", "generation"), ("0.0a", "none")):
    os.environ["TORCH_CUDA_ARCH_LIST"] = architectures
    assert load_inline(name=name, cpp_sources=F, cuda_sources=BODY, functions=["f"]).given["name"] == name
os.environ["TORCH_CUDA_ARCH_LIST"] = "8.0;9.0+PTX 0.0a"
assert callable(load_inline(name="one", cpp_sources=F, cuda_sources=BODY, functions=["f"]).f)
del os.environ["TORCH_CUDA_ARCH_LIST"]
tried = os.listdir("load_inline")
assert load_inline(**CASES[0]).given["name"] == "unknown" and os.listdir("load_inline") == tried  # found out once
a = load_inline("same", BODY, None, {"f": "what it does"}, build_directory=os.getcwd())
assert a.f.__doc__ == "what it does" and load_inline("same", BODY, None, {"f": "what it does"}, build_directory=os.getcwd()) is a


def custom_kernel(data):
    x, y, a = data
    torch.launch("fk_scale", x, y, x.numel(), a)
