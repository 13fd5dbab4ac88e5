# A fill, and atomic sums of integers, whose order does not matter.
# Size: n=67108864 small=4096
# Tensor: x in i32 n integers 0 100
# Tensor: i in i64 n integers 0 4194303
# Tensor: y out i32 4194304
import torch


def original(x, i, y):
    y.zero_()
    y.scatter_add_(0, i, x)
