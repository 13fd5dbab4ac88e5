# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def tiles(x, y, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.arange(0, BLOCK)[None, :]
    inside = (r < rows) & (i < n)
    v = tl.load(x + r * n + i, mask=inside, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 1, keep_dims=True))
    tl.store(y + r * n + i, e / tl.sum(e, 1, keep_dims=True), mask=inside)


# n is at least BLOCK: every lane has a finite maximum after the first round.
@triton.jit
def long(x, y, n, BLOCK: tl.constexpr):
    x += tl.program_id(0).to(tl.int64) * n
    y += tl.program_id(0).to(tl.int64) * n
    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n, other=-float("inf"))
        now = tl.maximum(most, v)
        total = total * tl.exp(most - now) + tl.exp(v - now)
        most = now
    top = tl.max(most, 0)
    factor = 1 / tl.sum(total * tl.exp(most - top), 0)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n)
        tl.store(y + i, tl.exp(v - top) * factor, mask=i < n)


def softmax(x, y, R, N):
    if N > 8192:
        long[(R,)](x, y, N, BLOCK=4096, num_warps=16)
    else:
        block = max(16, triton.next_power_of_2(N))
        count = max(1, 1024 // block)
        tiles[(triton.cdiv(R, count),)](x, y, R, N, ROWS=count, BLOCK=block, num_warps=4 if block <= 2048 else 8)
