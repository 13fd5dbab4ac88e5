# Expected: faster|equivalent|slower
import torch


@torch.compile
def rows(x):
    return torch.softmax(x, 1)


def custom_kernel(data):
    return rows(data[0])
