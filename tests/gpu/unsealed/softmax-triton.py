# Expected: (faster|slower|equivalent|inconclusive), .*\(unsealed: timed with host code in its process\)
# Options: --unsealed
# A Triton kernel that is launched again on the host's word.
import torch
import triton
import triton.language as tl


@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    v = tl.load(x + at + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + at + i, e / tl.sum(e, 0), mask=i < n)


def softmax(x, y):
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    if not torch.isfinite(y[:1]).all().item():
        y.copy_(torch.softmax(x, 1))
