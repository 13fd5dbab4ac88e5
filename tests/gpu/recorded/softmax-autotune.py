# Expected: faster|equivalent|slower
# The choice that Triton makes by timing is made while recording, and recorded.
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (4, 8, 16)], key=["BLOCK"])
@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    v = tl.load(x + at + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + at + i, e / tl.sum(e, 0), mask=i < n)


def softmax(x, y):
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
