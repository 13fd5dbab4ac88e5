# Expected: timeout
# Options: --unsealed
# Runs unsealed and stops answering.
import threading

import torch

calls = []


def softmax(x, y):
    calls.append(x.max().item())
    if len(calls) > 8:
        threading.Event().wait()
    return torch.softmax(x, 1)
