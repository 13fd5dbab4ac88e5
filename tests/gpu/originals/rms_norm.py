# Size: n=16384 small=64
# Tensor: x in f32 n,4096
# Tensor: w in f32 4096
# Tensor: y out f32 n,4096
import torch


def custom_kernel(data):
    x, w, y = data
    return torch.nn.functional.rms_norm(x, (4096,), w, 1e-5)
