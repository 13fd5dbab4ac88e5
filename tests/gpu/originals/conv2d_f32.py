# cuDNN.
# Size: n=256 small=2
# Tensor: x in f32 n,64,56,56
# Tensor: w in f32 64,64,3,3
# Tensor: y out f32 n,64,56,56
import torch


def custom_kernel(data):
    x, w, y = data
    return torch.nn.functional.conv2d(x, w, padding=1)
