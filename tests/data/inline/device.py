# Device code in the ways that people write it, for a compiler of CUDA: nothing of it is called.
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/EmptyTensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <algorithm>
#include <cfloat>
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;

__global__ void gelu_half2(const half2 *__restrict__ x, half2 *__restrict__ y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float2 v = __half22float2(x[i]);
        v.x = 0.5f * v.x * (1.0f + erff(v.x * 0.70710678f));
        v.y = 0.5f * v.y * (1.0f + erff(v.y * 0.70710678f));
        y[i] = __float22half2_rn(v);
    }
}

__global__ void twice(const __nv_bfloat16 *x, __nv_bfloat16 *y, int n)
{
    if (threadIdx.x < n) y[threadIdx.x] = __float2bfloat16(__bfloat162float(x[threadIdx.x]) * 2.f);
}

template <typename T> __device__ __forceinline__ T sigmoid(T z) { return 1.0 / (1.0 + exp(-z)); }

template <typename scalar_t>
__global__ void __launch_bounds__(256) gated(const scalar_t *__restrict__ x, scalar_t *__restrict__ y, size_t n)
{
    using acc_t = at::acc_type<scalar_t, true>;
    const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    cg::thread_block block = cg::this_thread_block();
    acc_t most = std::numeric_limits<scalar_t>::lowest();
    if (i < n) {
        const scalar_t v = x[i];
        y[i] = v * scalar_t(0.5) + sigmoid(static_cast<float>(v)) * v / 2 - x[0];
        if (v > scalar_t(0)) y[i] += v;
        most = std::max(most, static_cast<acc_t>(v));
    }
    block.sync();
    if (i < n && most == acc_t(0)) y[i] = static_cast<scalar_t>(0);
}

template <typename scalar_t>
__global__ void rows(const torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> in, torch::PackedTensorAccessor64<scalar_t, 2> out)
{
    const int c = blockIdx.x * blockDim.x + threadIdx.x, n = blockIdx.y;
    if (c < in.size(1)) out[n][c] = in[n][c] > scalar_t(0) ? in[n][c] : scalar_t(0);
}

std::vector<torch::Tensor> device(torch::Tensor input, c10::optional<torch::Tensor> bias, int64_t dim)
{
    TORCH_CHECK(input.device().type() == torch::kCUDA && input.type().is_cuda(), "input must be on the GPU");
    auto sizes = input.sizes().vec();
    int64_t outer = 1;
    for (int i = 0; i < dim; ++i) outer *= sizes[i];
    torch::Tensor x = input.reshape({outer, -1}).contiguous();
    auto y = torch::empty(sizes, input.options().dtype(input.scalar_type())), z = torch::zeros({outer, x.size(1)}, torch::dtype(x.dtype()).device(torch::kCUDA, 0));
    const int threads = std::min<int64_t>(256, x.size(1));
    const dim3 blocks((x.size(1) + threads - 1) / threads, outer);
    cudaStream_t stream = at::cuda::getCurrentCUDAStream();
    if (x.scalar_type() == at::kHalf) {
        gelu_half2<<<(x.numel() / 2 + 255) / 256, 256, 0, stream>>>(reinterpret_cast<const half2 *>(x.data_ptr<at::Half>()),
                                                                    reinterpret_cast<half2 *>(y.data_ptr<at::Half>()), x.numel() / 2);
    } else if (x.dtype() == torch::kBFloat16) {
        twice<<<1, 32, 0, at::cuda::getCurrentCUDAStream().stream()>>>(static_cast<const __nv_bfloat16 *>(x.data_ptr()),
                                                                       reinterpret_cast<__nv_bfloat16 *>(y.data_ptr<at::BFloat16>()), 32);
    }
    AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "gated", [&] {
        gated<scalar_t><<<blocks, threads, 0, stream>>>(x.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), x.numel());
    });
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.type(), "rows", ([&] {
        rows<scalar_t><<<blocks, threads, threads * sizeof(float), c10::cuda::getCurrentCUDAStream()>>>(
            x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(), z.packed_accessor64<scalar_t, 2>());
    }));
    cudaFuncSetAttribute(rows<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    auto w = at::detail::empty_strided_cuda({4, 2}, {1, 4}, torch::kF16, x.device());
    TORCH_CHECK(w.stride(1) == 4 && at::detail::empty_strided_cuda({1}, {1}, z.options()).numel() == 1);
    if (bias.has_value() && bias->defined()) z = z + *bias;
    return {y.view(input.sizes()), z.transpose(0, 1)};
}
"""
made = load_inline("device", "std::vector<torch::Tensor> device(torch::Tensor input, c10::optional<torch::Tensor> bias, int64_t dim);", CUDA, ["device"],
                   extra_cuda_cflags=["-O3 --use_fast_math", "-lineinfo"])
