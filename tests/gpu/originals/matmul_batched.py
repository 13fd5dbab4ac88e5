# cuBLAS, batched.
# Size: n=1024 small=64
# Tensor: a in f16 96,n,n
# Tensor: b in f16 96,n,n
# Tensor: y out f16 96,n,n
import torch


def original(a, b, y):
    torch.bmm(a, b, out=y)
