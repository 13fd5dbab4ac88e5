# Expected: faster|equivalent
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
    block = triton.next_power_of_2(x.shape[1])
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=block, num_warps=4 if block <= 2048 else 16)
