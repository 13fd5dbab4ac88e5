# Expected: (faster|slower|equivalent|inconclusive), [^(]*\(baseline
# Options: --unsealed
# What can be recorded is recorded, although it might run unsealed.
import torch


def softmax(x, y):
    return torch.softmax(x, 1)
