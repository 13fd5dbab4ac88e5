# Expected: wrong
# Options: --unsealed
# Runs unsealed and keeps its answers: the inputs are others each time.
import torch

kept = {}


def softmax(x, y):
    key = (tuple(x.shape), x.max().item() > 1e30)
    if key not in kept:
        kept[key] = torch.softmax(x, 1)
    return kept[key]
