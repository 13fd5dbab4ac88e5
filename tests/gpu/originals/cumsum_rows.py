# Size: n=8192 small=64
# Tensor: x in f32 n,8192
# Tensor: y out f32 n,8192
import torch


def original(x, y):
    torch.cumsum(x, dim=-1, out=y)
