# Files that a candidate has written are compiled by load without PyTorch's headers, each by itself; what these do not do for goes to PyTorch's.
import os
import torch
from torch.utils import cpp_extension
from torch.utils.cpp_extension import load

SHARED = "#pragma once\n#include <torch/extension.h>\nint64_t doubled(const torch::Tensor &x);\n"
HELPER = "#include \"shared.h\"\nstatic int factor = 2;\n#ifdef __CUDACC__\n__global__ void kernel() {}\n#endif\nint64_t doubled(const torch::Tensor &x) { return x.numel() * factor; }\n"
MODULE = ("#include \"shared.h\"\nstatic int factor = 3;\nint64_t tripled(const torch::Tensor &x) { return doubled(x) + x.numel() * (factor - 2); }\n"
          "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"tripled\", &tripled, \"three times\"); m.def(\"doubled\", &doubled); }\n")
os.makedirs("written/sources")
for name, text in (("shared.h", SHARED), ("helper.cu", HELPER), ("module.cpp", MODULE), ("module.cc", MODULE), ("module.cu", MODULE),
                   ("library.cpp", "TORCH_LIBRARY(library, m) { }"), ("text.txt", MODULE)):
    with open(f"written/sources/{name}", "w") as file:
        file.write(text)
x = torch.tensor([1.0, 2.0])
for number, first in enumerate(("module.cpp", "module.cc", "module.cu")):
    made = load(name=f"files{number}", sources=[f"written/sources/{first}", os.path.abspath("written/sources/helper.cu")], extra_cuda_cflags=["-O3"], verbose=True)
    assert made.tripled(x) == 6 and made.doubled(x) == 4 and "three times" in made.tripled.__doc__
other = cpp_extension.load("alone", "written/sources/helper.cu")  # names no function
assert other.given == {"name": "alone", "sources": "written/sources/helper.cu", "rest": ()}
other = load("library", ["written/sources/library.cpp"], is_python_module=False)
assert other.given == {"name": "library", "sources": ["written/sources/library.cpp"], "rest": (), "is_python_module": False}
assert load("nowhere", ["written/nowhere.cpp"]).given["name"] == "nowhere" and load("text", ["written/sources/text.txt"]).given["name"] == "text"
assert load("flags", ["written/sources/module.cu"], ["-O2"]).given["rest"] == (["-O2"],)


def custom_kernel(data):
    x, y, a = data
    torch.launch("fk_scale", x, y, x.numel(), a)
    return y
