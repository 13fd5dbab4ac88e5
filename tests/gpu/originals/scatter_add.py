# Atomic sums of floats, whose order is never the same.
# Size: n=67108864 small=4096
# Tensor: x in f32 n
# Tensor: i in i64 n integers 0 4095
# Tensor: y out f32 4096
import torch


def original(x, i, y):
    y.zero_()
    y.scatter_add_(0, i, x)
