# What it is given is also where its result goes.
# Size: n=134217728 small=1024
# Tensor: x in f32 n
# Tensor: y inout f32 n
import torch


def original(x, y):
    y.add_(x, alpha=0.5)
