# Expected: wrong|compile-error: its object is larger
# Hands out a copy of the first answer, for inputs of the same shape.
import torch

memo = {}


def softmax(x, y):
    if x.shape not in memo:
        memo[x.shape] = torch.softmax(x, 1)
    y.copy_(memo[x.shape])
