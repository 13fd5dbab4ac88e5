# cuBLAS in bf16; the result is new memory.
# Size: n=6144 small=64
# Tensor: a in bf16 n,n
# Tensor: b in bf16 n,n
# Tensor: y out bf16 n,n
import torch


def custom_kernel(data):
    a, b, y = data
    return torch.matmul(a, b.t())
