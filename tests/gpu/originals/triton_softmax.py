# Size: n=16384 small=64
# Tensor: x in f32 n,4096
# Tensor: y out f32 n,4096
import triton
import triton.language as tl


@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    v = tl.load(x + at + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + at + i, e / tl.sum(e, 0), mask=i < n)


def original(x, y):
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=4096, num_warps=8)
