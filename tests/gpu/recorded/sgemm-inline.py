# Expected: faster|equivalent|slower
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#define TILE 32
using Matrix = torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits>;

__global__ void product(const Matrix A, const Matrix B, Matrix C)
{
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    const int M = A.size(0), K = A.size(1), N = B.size(1);
    float sum = 0;
    for (int t = 0; t < K; t += TILE) {
        a[threadIdx.y][threadIdx.x] = row < M && t + threadIdx.x < K ? A[row][t + threadIdx.x] : 0.0f;
        b[threadIdx.y][threadIdx.x] = column < N && t + threadIdx.y < K ? B[t + threadIdx.y][column] : 0.0f;
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < TILE; ++k) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
        __syncthreads();
    }
    if (row < M && column < N) C[row][column] = sum;
}

std::vector<torch::Tensor> sgemm(const torch::Tensor &a, const torch::Tensor &b, c10::optional<torch::Tensor> out)
{
    TORCH_CHECK(a.scalar_type() == torch::kFloat32 && b.dtype() == a.dtype(), "expected float, got ", a.dtype(), " and ", b.dtype());
    TORCH_CHECK(a.size(1) == b.size(0), "cannot multiply ", a.sizes(), " by ", b.sizes());
    auto c = out.has_value() ? *out : torch::zeros({a.size(0), b.size(1)}, a.options());
    const dim3 threads(TILE, TILE), blocks((b.size(1) + TILE - 1) / TILE, (a.size(0) + TILE - 1) / TILE);
    product<<<blocks, threads>>>(a.packed_accessor32<float, 2, torch::RestrictPtrTraits>(), b.packed_accessor32<float, 2, torch::RestrictPtrTraits>(),
                                 c.packed_accessor32<float, 2, torch::RestrictPtrTraits>());
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
    return {c};
}
"""
declared = "std::vector<torch::Tensor> sgemm(const torch::Tensor &a, const torch::Tensor &b, c10::optional<torch::Tensor> out);"
made = load_inline(name="sgemm_inline", cpp_sources=declared, cuda_sources=source, functions={"sgemm": "C = A B"}, extra_cflags=[""], extra_ldflags=[""])


def custom_kernel(data):
    a, b, c = data
    return made.sgemm(a, b, None)[0]
