# cuDNN in f16, with a stride and a bias.
# Size: n=512 small=2
# Tensor: x in f16 n,64,56,56
# Tensor: w in f16 128,64,3,3
# Tensor: b in f16 128
# Tensor: y out f16 n,128,28,28
import torch


def custom_kernel(data):
    x, w, b, y = data
    return torch.nn.functional.conv2d(x, w, b, stride=2, padding=1)
