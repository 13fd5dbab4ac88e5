# Size: n=67108864 small=4096
# Tensor: x in f32 n
# Tensor: w in f32 n
# Tensor: y out f32 n
import torch


@torch.compile
def chain(x, w):
    return torch.tanh(torch.sigmoid(x) * w + 0.25) * x


def original(x, w, y):
    return chain(x, w)
