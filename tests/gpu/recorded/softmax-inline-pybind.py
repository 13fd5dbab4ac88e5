# Expected: faster|equivalent|slower
# It binds its functions itself, by PYBIND11_MODULE.
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
__global__ void rows(const float *x, float *y, int n)
{
    __shared__ float part[256];
    const float *in = x + (size_t)blockIdx.x * n;
    float *out = y + (size_t)blockIdx.x * n, most = -INFINITY, sum = 0;
    int t = threadIdx.x;
    for (int i = t; i < n; i += 256) most = fmaxf(most, in[i]);
    part[t] = most;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (t < step) part[t] = fmaxf(part[t], part[t + step]);
        __syncthreads();
    }
    most = part[0];
    __syncthreads();
    for (int i = t; i < n; i += 256) sum += expf(in[i] - most);
    part[t] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }
    for (int i = t; i < n; i += 256) out[i] = expf(in[i] - most) / part[0];
}

torch::Tensor softmax_rows(torch::Tensor x)
{
    auto y = torch::empty_like(x);
    rows<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
"""

CPP = """
torch::Tensor softmax_rows(torch::Tensor x);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("softmax_rows", &softmax_rows, pybind11::arg("x")); }
"""
made = load_inline(name="softmax_pybind", cpp_sources=CPP, cuda_sources=CUDA)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return made.softmax_rows(x=x)
