# Expected: crash|wrong
# Keeps answers behind its output, where memory may be mapped but is nobody's, and finds them by the first value of the row.
import triton
import triton.language as tl


@triton.jit
def rows(x, y, n, behind, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row.to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    first = tl.load(x + at)
    if tl.load(y + behind + row) == first:
        tl.store(y + at + i, tl.load(y + behind + 65536 + at + i, mask=i < n), mask=i < n)
    else:
        v = tl.load(x + at + i, mask=i < n, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0))
        e = e / tl.sum(e, 0)
        tl.store(y + at + i, e, mask=i < n)
        tl.store(y + behind + 65536 + at + i, e, mask=i < n)
        tl.store(y + behind + row, first)


def softmax(x, y):
    behind = y.numel() + 16384
    rows[(x.shape[0],)](x, y, x.shape[1], behind, BLOCK=triton.next_power_of_2(x.shape[1]))
