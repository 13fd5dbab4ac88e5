# Expected: compile-error: .*RuntimeError: expected float16, got float
import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
torch::Tensor softmax_rows(torch::Tensor x)
{
    TORCH_CHECK(x.scalar_type() == at::kHalf, "expected float16, got ", x.dtype());
    return at::softmax(x, 1);
}
"""
made = load_inline(name="softmax_check", cpp_sources="torch::Tensor softmax_rows(torch::Tensor x);", cuda_sources=CUDA, functions=["softmax_rows"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return made.softmax_rows(x)
