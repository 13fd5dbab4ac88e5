# Size: n=16384 small=64
# Tensor: x in f32 n,4096
# Tensor: w in f32 4096
# Tensor: b in f32 4096
# Tensor: y out f32 n,4096
import torch


def custom_kernel(data):
    x, w, b, y = data
    return torch.nn.functional.layer_norm(x, (4096,), w, b)
