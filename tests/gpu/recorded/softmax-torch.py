# Expected: faster|equivalent
import torch


def custom_kernel(data):
    x, y = data
    return torch.softmax(x, 1)
