# One scan of many blocks, each of which takes what the ones before it have by then.
# Size: n=134217728 small=65536
# Tensor: x in f32 n
# Tensor: y out f32 n
import torch


def original(x, y):
    torch.cumsum(x, dim=0, out=y)
