# Size: n=16384 small=64
# Tensor: x in f32 n,4096
# Tensor: w in f32 4096
# Tensor: y out f32 n,4096
import torch


@torch.compile
def norm(x, w):
    return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-5) * w


def original(x, w, y):
    return norm(x, w)
