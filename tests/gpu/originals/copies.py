# A fill and copies by the driver, and no kernel.
# Size: n=134217728 small=1024
# Tensor: x in f32 n
# Tensor: y out f32 n
import torch


def original(x, y):
    half = x.numel() // 2
    y.zero_()
    y[:half].copy_(x[half:])
    y[half:half + half // 2].copy_(x[:half // 2])
