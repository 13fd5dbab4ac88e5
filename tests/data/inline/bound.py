# Sources that name their functions themselves, by PYBIND11_MODULE: in C++ or in CUDA, with what they are for, names and usual values.
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
#include <pybind11/stl.h>
namespace py = pybind11;
torch::Tensor copied(torch::Tensor x) { return x.clone(); }
std::string told(int64_t a, double b, const std::string &c, std::optional<torch::Tensor> d)
{
    return c10::str(a, " ", b, " ", c, " ", d ? d->numel() : -1);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.doc() = "a module";
    m.def("copied", &copied, "gives another tensor");
    m.def("told", told, py::arg("a"), py::arg("b") = 0.5, pybind11::arg("c") = "none", py::arg("d") = py::none(), "tells");
    m.def("twice", [](int64_t x) { return 2 * x; }).def("nothing", []() {});
}
"""
a = load_inline("in_cpp", SOURCE)
b = load_inline(name="in_cuda", cpp_sources="", cuda_sources=[SOURCE], functions=None, verbose=False)


def raises(kind, words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"{call.__name__} raises nothing")


x = torch.empty(6)
for made in (a, b):
    assert made.copied.__doc__ == "gives another tensor" and made.told.__doc__ == "tells" and made.twice.__doc__ == ""
    assert made.copied(x).numel() == 6
    assert made.told(1) == "1 0.5 none -1"
    assert made.told(1, 2, "text", x) == "1 2 text 6"
    assert made.told(b=3, a=4, d=x) == "4 3 none 6"
    assert made.told(5, c="c") == "5 0.5 c -1"
    assert made.twice(21) == 42 and made.nothing() is None
    raises(TypeError, "told() needs argument a", made.told)
    raises(TypeError, "told() has two values for argument a", made.told, 1, a=2)
    raises(TypeError, "told() has no argument e", made.told, 1, e=2)
    raises(TypeError, "told() takes 4 arguments and was given 5", made.told, 1, 2, "c", x, 5)
    raises(TypeError, "twice() has no argument x", made.twice, x=1)
    raises(TypeError, "argument 1", made.told, "no number")


def custom_kernel(data):
    x, y, a = data
    torch.launch("fk_scale", x, y, x.numel(), a)
