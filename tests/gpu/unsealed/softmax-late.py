# Expected: wrong
# Options: --unsealed
# Runs unsealed and writes its result when its time has been taken: the judge has its copy before.
import threading

import torch


def write(x, y):
    threading.Event().wait(0.05)
    y.copy_(torch.softmax(x, 1))
    torch.cuda.synchronize()


def softmax(x, y):
    x.max().item()
    threading.Thread(target=write, args=(x, y), daemon=True).start()
