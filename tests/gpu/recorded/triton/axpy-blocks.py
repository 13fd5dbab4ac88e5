# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def blocks(x, y, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    u = tl.load(x + i, mask=inside)
    v = tl.load(y + i, mask=inside)
    tl.store(y + i, a * u + v, mask=inside)


def axpy(x, y, N, a):
    block = 2048 if N > 1 << 19 else 512
    blocks[(triton.cdiv(N, block),)](x, y, N, a, BLOCK=block, num_warps=block // 256)
