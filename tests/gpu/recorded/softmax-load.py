# Expected: faster|equivalent|slower
# It writes its sources into files and has them compiled by load; a warp takes a row.
import os
import torch
from torch.utils.cpp_extension import load

KERNEL = r"""
#include "rows.h"
__global__ void warps(const float *x, float *y, int64_t rows, int n)
{
    int64_t row = blockIdx.x * (int64_t)(blockDim.x / 32) + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += row * n;
    y += row * n;
    float most = -INFINITY, sum = 0;
    for (int i = lane; i < n; i += 32) most = fmaxf(most, x[i]);
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    for (int i = lane; i < n; i += 32) sum += expf(x[i] - most);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    for (int i = lane; i < n; i += 32) y[i] = expf(x[i] - most) / sum;
}
void softmax_rows(const float *x, float *y, int64_t rows, int n)
{
    warps<<<(unsigned)((rows + 7) / 8), 256>>>(x, y, rows, n);
}
"""
BINDING = r"""
#include <torch/extension.h>
#include "rows.h"
static torch::Tensor softmax(torch::Tensor x)
{
    TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.dim() == 2, "a contiguous matrix on the GPU is expected");
    auto y = torch::empty_like(x);
    softmax_rows(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), static_cast<int>(x.size(1)));
    return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("softmax", &softmax, "softmax of rows"); }
"""
os.makedirs("sources", exist_ok=True)
for name, text in (("rows.h", "#include <cstdint>\nvoid softmax_rows(const float *x, float *y, int64_t rows, int n);\n"), ("rows.cu", KERNEL), ("rows.cpp", BINDING)):
    with open(f"sources/{name}", "w", encoding="utf-8") as file:
        file.write(text)
made = load(name="softmax_load", sources=["sources/rows.cpp", "sources/rows.cu"], extra_cuda_cflags=["-O3"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return made.softmax(x)
