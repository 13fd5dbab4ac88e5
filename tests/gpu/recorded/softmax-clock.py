# Expected: slower
# Stops every clock that it can reach, and is slow.
import time

import torch

torch.cuda.Event.elapsed_time = lambda *a: 1e-6
torch.cuda.synchronize = lambda *a: None
time.perf_counter = time.time = time.monotonic = lambda: 0.0


def softmax(x, y):
    for _ in range(12):
        torch.softmax(x, 1, out=y)
