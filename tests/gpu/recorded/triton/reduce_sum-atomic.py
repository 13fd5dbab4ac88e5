# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    sums = tl.zeros((BLOCK,), tl.float32)
    for at in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = at + tl.arange(0, BLOCK)
        sums += tl.load(x + i, mask=i < n, other=0.0)
    tl.atomic_add(y, tl.sum(sums, 0), sem="relaxed")


def reduce_sum(x, y, N):
    block = 4096 if N > 1 << 20 else 512
    y.zero_()
    add[(min(triton.cdiv(N, block), 528),)](x, y, N, BLOCK=block, num_warps=8 if block > 512 else 4)
