# Expected: (faster|slower|equivalent|inconclusive), .*\(unsealed: timed with host code in its process\)
# Options: --unsealed
# Reads a maximum on the host and decides by it, so that there is nothing to be recorded that holds for other inputs.
import torch


def softmax(x, y):
    if x.max().item() > 0:
        return torch.softmax(x, 1)
    return torch.softmax(x - x.amax(1, keepdim=True), 1)
