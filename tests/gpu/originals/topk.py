# Size: n=1024 small=8
# Tensor: x in f32 n,65536
# Tensor: y out f32 n,64
# Tensor: i out i64 n,64
import torch


def custom_kernel(data):
    x, y, i = data
    return torch.topk(x, 64, dim=-1)
