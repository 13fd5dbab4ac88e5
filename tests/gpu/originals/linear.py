# A product whose bias is added by cuBLASLt.
# Size: n=4096 small=64
# Tensor: x in bf16 16384,n
# Tensor: w in bf16 n,n
# Tensor: b in bf16 n
# Tensor: y out bf16 16384,n
import torch


def custom_kernel(data):
    x, w, b, y = data
    return torch.nn.functional.linear(x, w, b)
