# Size: n=4096 small=64
# Tensor: x in f32 n,4096
# Tensor: y out f32 n,4096
# Tensor: i out i64 n,4096
import torch


def custom_kernel(data):
    x, y, i = data
    return torch.sort(x, dim=-1, stable=True)
