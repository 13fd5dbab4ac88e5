# Expected: faster|equivalent|slower
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) CHECK_CUDA(x); CHECK_CONTIGUOUS(x)

__device__ __forceinline__ float block_sum(float v, float *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    #pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffff, v, offset);
    __syncthreads();
    if (lane == 0) shared[warp] = v;
    __syncthreads();
    v = 0;
    for (int i = 0; i < blockDim.x / 32; ++i) v += shared[i];
    return v;
}

template <typename scalar_t>
__global__ void layernorm_kernel(const scalar_t* __restrict__ x, const scalar_t* __restrict__ w, const scalar_t* __restrict__ b,
                                 scalar_t* __restrict__ y, const int64_t n, const float eps)
{
    __shared__ float shared[32];
    const scalar_t* row = x + blockIdx.x * n;
    float sum = 0.f, squares = 0.f;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += static_cast<float>(row[i]);
    const float mean = block_sum(sum, shared) / n;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const float d = static_cast<float>(row[i]) - mean;
        squares += d * d;
    }
    const float scale = rsqrtf(block_sum(squares, shared) / n + eps);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        const float v = (static_cast<float>(row[i]) - mean) * scale;
        y[blockIdx.x * n + i] = static_cast<scalar_t>(v * static_cast<float>(w[i]) + static_cast<float>(b[i]));
    }
}

torch::Tensor layernorm_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor b, double eps)
{
    CHECK_INPUT(x);
    CHECK_INPUT(w);
    CHECK_INPUT(b);
    TORCH_CHECK(x.dim() == 2, "expected two dimensions, got ", x.dim());
    const at::cuda::OptionalCUDAGuard guard(device_of(x));
    const auto rows = x.size(0), n = x.size(1);
    auto y = torch::empty_like(x);
    const auto stream = at::cuda::getCurrentCUDAStream();
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "layernorm_cuda", ([&] {
        layernorm_kernel<scalar_t><<<rows, 256, 0, stream>>>(x.data_ptr<scalar_t>(), w.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(),
                                                             y.data_ptr<scalar_t>(), n, static_cast<float>(eps));
    }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

layernorm = load_inline(name="layernorm_inline", cpp_sources=["torch::Tensor layernorm_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor b, double eps);"],
                        cuda_sources=[cuda_source], functions=["layernorm_cuda"], verbose=True, extra_cflags=["-O3"], extra_cuda_cflags=["-O3", "--use_fast_math"])


class ModelNew(nn.Module):
    def forward(self, x, w, b, eps):
        return layernorm.layernorm_cuda(x, w, b, eps)
