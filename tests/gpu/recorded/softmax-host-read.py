# Expected: rejected
import torch


def softmax(x, y):
    if x.max().item() > 0:
        return torch.softmax(x, 1)
    return torch.softmax(-x, 1)
