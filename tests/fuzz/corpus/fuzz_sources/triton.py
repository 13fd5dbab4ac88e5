# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


# Moments in one pass, of differences to the first element of the row, so that squares do not cancel.
@triton.jit
def tiles(x, w, b, y, rows, n, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    first = tl.load(x + r * n, mask=r < rows, other=0.0).to(tl.float32)
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    squares = tl.zeros((ROWS, BLOCK), tl.float32)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)[None, :]
        inside = (r < rows) & (i < n)
        v = tl.load(x + r * n + i, mask=inside, other=0.0).to(tl.float32)
        d = tl.where(inside, v - first, 0.0)
        sums += d
        squares += d * d
    mean = tl.sum(sums, 1, keep_dims=True) / n
    factor = tl.rsqrt(tl.sum(squares, 1, keep_dims=True) / n - mean * mean + eps)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)[None, :]
        inside = (r < rows) & (i < n)
        d = tl.load(x + r * n + i, mask=inside, other=0.0).to(tl.float32) - first - mean
        weight = tl.load(w + i, mask=i < n, other=0.0).to(tl.float32)
        offset = tl.load(b + i, mask=i < n, other=0.0).to(tl.float32)
        tl.store(y + r * n + i, (d * factor * weight + offset).to(tl.float16), mask=inside)


def layernorm(x, w, b, y, R, N, eps):
    block = min(4096, max(16, triton.next_power_of_2(N)))
    count = max(1, 1024 // block)
    tiles[(triton.cdiv(R, count),)](x, w, b, y, R, N, eps, ROWS=count, BLOCK=block, num_warps=8 if block > 2048 else 4)
