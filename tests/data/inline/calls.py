# Functions in C++ as candidates declare them, with each kind of argument and result; the last one is recorded.
import os
import torch
from torch.utils.cpp_extension import load_inline

DECLARED = """
#include <vector>
torch::Tensor copied(torch::Tensor x, const torch::Tensor &like);
std::tuple<int64_t, double, bool, std::string> numbers(int a, float b, bool c, const std::string &d);
int64_t counted(const std::vector<torch::Tensor> &all, std::vector<int64_t> more, c10::optional<int64_t> extra);
std::optional<torch::Tensor> either(std::optional<at::Tensor> x);
std::string described(const at::Tensor &x);
std::vector<at::Tensor> made(at::Tensor x);
void filled(torch::Tensor x);
int64_t devices();
at::ScalarType wider(at::ScalarType type);
int64_t spread(torch::IntArrayRef list, at::Device device, at::Scalar last);
std::tuple<at::Tensor, at::Tensor> reserved(at::Tensor like);
"""
DEFINED = r"""
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/EmptyTensor.h>
#include <c10/cuda/CUDAGuard.h>
#define CHECK_INPUT(x) TORCH_CHECK(x.device().is_cuda(), #x " must be on the GPU"); TORCH_CHECK(x.is_contiguous())
extern "C" int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void *stream);

torch::Tensor copied(torch::Tensor x, const torch::Tensor &like)
{
    CHECK_INPUT(x);
    const c10::cuda::CUDAGuard guard(x.device());
    auto y = torch::empty_like(like);
    cudaStream_t stream = at::cuda::getCurrentCUDAStream();
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "copied", ([&] {
        cuMemcpyDtoDAsync_v2((unsigned long long)y.data_ptr<scalar_t>(), (unsigned long long)x.data_ptr<scalar_t>(),
                             x.numel() * sizeof(scalar_t), stream);
    }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
std::tuple<int64_t, double, bool, std::string> numbers(int a, float b, bool c, const std::string &d)
{
    return {a + 1, b + 1, !c, d + "!"};
}
int64_t counted(const std::vector<torch::Tensor> &all, std::vector<int64_t> more, c10::optional<int64_t> extra)
{
    int64_t n = extra.value_or(1000);
    for (const auto &each : all) n += each.numel();
    for (auto each : more) n += each;
    return n;
}
std::optional<torch::Tensor> either(std::optional<at::Tensor> x) { return x; }
std::string described(const at::Tensor &x)
{
    return c10::str(x.sizes(), x.strides(), " ", x.dtype(), " ", x.scalar_type(), " ", x.device(), " ", x.dim(), " ", x.nbytes(), " ", x.size(-1), " ",
                    x.options().device().is_cuda(), x.type().is_cuda(), x.dtype() == torch::kFloat32, x.sizes() == at::IntArrayRef({2, 3}));
}
std::vector<at::Tensor> made(at::Tensor x)
{
    auto on = torch::TensorOptions().dtype(torch::kInt32).device(x.device());
    auto pair = x.max(0);
    return {torch::zeros({2, 2}, on), torch::full({3}, 7, x.options()), x.view({-1}), x.contiguous(), torch::cat({x, x}), x.sum(),
            std::get<0>(pair), std::get<1>(pair), torch::empty({x.size(0)}, x.options().dtype(at::kHalf)), x.sum(torch::kFloat64), at::Tensor()};
}
void filled(torch::Tensor x) { x.zero_(); }
int64_t devices()
{
    int64_t seen = 0;
    {
        c10::cuda::OptionalCUDAGuard guard(at::Device(torch::kCUDA, 2));
        seen = 10 * at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
    }
    return seen + at::cuda::current_device();
}
at::ScalarType wider(at::ScalarType type) { return type == at::kFloat ? at::kDouble : at::kFloat; }
int64_t spread(torch::IntArrayRef list, at::Device device, at::Scalar last) { return list.back() * 100 + device.index() * 10 + last.toInt(); }
std::tuple<at::Tensor, at::Tensor> reserved(at::Tensor like)
{
    const at::TensorBase first = at::detail::empty_cuda({2, 3}, torch::kF32, like.device(), std::nullopt);
    return {at::Tensor(first), at::detail::empty_cuda({4}, torch::TensorOptions(torch::kI64))};
}
"""
NAMES = "copied numbers counted either described made filled devices wider spread reserved".split()
DRIVER = os.path.join(os.path.dirname(torch.__file__), "libcuda.so.1")
ours = load_inline(name="calls", cpp_sources=[DECLARED], cuda_sources=[DEFINED], functions=NAMES, extra_ldflags=["", DRIVER], extra_cflags=["-O1 -Wall"],
                   extra_cuda_cflags=["-O2"], with_cuda=True, verbose=False)


def refused(kind, *call):
    try:
        call[0](*call[1:])
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


x = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
assert ours.copied(x, x).tolist() == x.tolist()
assert ours.numbers(41, 1, True, "ä") == (42, 2.0, False, "ä!") and isinstance(ours.numbers(1, 2, False, "")[1], float)
assert ours.numbers(torch.tensor([3], dtype=torch.int64), torch.tensor([0.5]), True, "") == (4, 1.5, False, "!")
assert ours.numbers(1, 1, 0, "")[2] is True and ours.numbers(1, 1, 2.5, "")[2] is False and ours.numbers(1, 1, None, "")[2] is True
assert ours.counted([x, x], (1, 2), 100) == 115 and ours.counted((), [], None) == 1000
assert ours.either(x) is x and ours.either(None) is None
assert ours.described(x.view(2, 3)) == "[2, 3][3, 1] float Float cuda:0 2 24 3 1111", ours.described(x.view(2, 3))
assert ours.described(torch.zeros(4, dtype=torch.float16)) == "[4][1] c10::Half Half cuda:0 1 8 4 1100"
made = ours.made(x)
assert isinstance(made, list) and made[0].dtype is torch.int32 and made[0].shape == (2, 2) and made[1].tolist() == [7.0] * 3
assert made[2].shape == (6,) and made[3] is x and made[4].tolist() == x.tolist() * 2 and made[5].item() == 21.0
assert made[6].tolist() == [1.0] and made[7].tolist() == [2.0] and made[8].dtype is torch.float16 and made[9].dtype is torch.float64 and made[10] is None
y = torch.tensor([1.0])
assert ours.filled(y) is None and y.item() == 0.0
assert ours.devices() == 1020
assert ours.wider(torch.float32) is torch.float64 and ours.spread([1, 2, 3], torch.device("cuda", 1), 4.5) == 314
new = ours.reserved(x)
assert [(each.dtype, tuple(each.shape), tuple(each.stride()), each.device.type) for each in new] == [
    (torch.float32, (2, 3), (3, 1), "cuda"), (torch.int64, (4,), (1,), "cuda")]
for call in ((ours.numbers, 1.5, 1, True, ""), (ours.numbers, 1, "b", True, ""), (ours.numbers, 1, 1, True, 5),
             (ours.numbers, 1 << 40, 1, True, ""), (ours.numbers, 1 << 70, 1, True, ""), (ours.numbers, 1, 1, True), (ours.copied, x, None),
             (ours.counted, x, [], None), (ours.copied, x, object())):
    refused(TypeError, *call)
assert "argument 2" in refused(TypeError, ours.copied, x, 5) and "takes 2 arguments and was given 1" in refused(TypeError, ours.copied, x)


def custom_kernel(data):
    x, y, a = data
    return ours.copied(x, y)
