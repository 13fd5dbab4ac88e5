# Expected: wrong: it wrote outside
import torch
import triton
import triton.language as tl


@triton.jit
def poke(y, at):
    tl.store(y + at, 1.0)


def softmax(x, y):
    torch.softmax(x, 1, out=y)
    poke[(1,)](y, y.numel())
