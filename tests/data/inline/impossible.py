# What load_inline compiles with no headers fails at once, with PyTorch's exception, and nothing is compiled. The candidate may go on without.
import os
import torch
from torch.utils.cpp_extension import load_inline

F = "torch::Tensor f(torch::Tensor x);"
BODY = "torch::Tensor f(torch::Tensor x) { return x; }"
BOUND = BODY + "\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"f\", &f); }"
TWICE = "functions= has them bound, and PYBIND11_MODULE in the sources binds them again"
CASES = [
    (dict(name="twice", cpp_sources=BOUND, functions="f"), TWICE),
    (dict(name="in_cuda", cpp_sources=F, cuda_sources="#if 1\n#endif\n" + BOUND, functions=["f"]), TWICE),
    (dict(name="by_name", cpp_sources=BOUND.replace("TORCH_EXTENSION_NAME", "by_name"), functions=["f"]), TWICE),
    (dict(name="kernel", cpp_sources="", cuda_sources=BODY, functions=["f"]), "functions= names f, which none of cpp_sources declares"),
    (dict(name="another", cpp_sources=[F, "void fg();"], functions={"f": "", "g": ""}), "functions= names g, which none of cpp_sources declares"),
]
for case, why in CASES:
    try:
        load_inline(**case)
        raise AssertionError(case)
    except RuntimeError as error:
        assert str(error) == f"Error building extension '{case['name']}': {why}", (str(error), case)
assert not os.path.exists("load_inline")


def custom_kernel(data):
    x, y, a = data
    torch.launch("fk_scale", x, y, x.numel(), a)
    return y
