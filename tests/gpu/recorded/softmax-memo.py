# Expected: rejected: it launches nothing
import torch

memo = {}


def softmax(x, y):
    if x.shape not in memo:
        memo[x.shape] = torch.softmax(x, 1)
    return memo[x.shape]
