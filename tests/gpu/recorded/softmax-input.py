# Expected: wrong: it changed its input x|wrong
import torch


def softmax(x, y):
    torch.softmax(x, 1, out=y)
    x.copy_(y)
