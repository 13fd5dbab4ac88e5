# Expected: crash|rejected
import torch


def softmax(x, y):
    kept = [torch.zeros(1 << 30, device="cuda") for _ in range(64)]
    torch.softmax(x + kept[0][0], 1, out=y)
