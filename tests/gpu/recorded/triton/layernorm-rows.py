# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def short(x, w, b, y, n, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + at + i, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(w + i, mask=inside).to(tl.float32)
    offset = tl.load(b + i, mask=inside).to(tl.float32)
    d = tl.where(inside, v - tl.sum(v, 0) / n, 0.0)
    factor = tl.rsqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(y + at + i, (d * factor * weight + offset).to(tl.float16), mask=inside)


@triton.jit
def long(x, w, b, y, n, eps, BLOCK: tl.constexpr):
    x += tl.program_id(0) * n
    y += tl.program_id(0) * n
    sums = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        sums += tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(sums, 0) / n
    squares = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        d = tl.where(i < n, tl.load(x + i, mask=i < n).to(tl.float32) - mean, 0.0)
        squares += d * d
    factor = tl.rsqrt(tl.sum(squares, 0) / n + eps)
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)
        d = tl.load(x + i, mask=i < n).to(tl.float32) - mean
        weight = tl.load(w + i, mask=i < n).to(tl.float32)
        offset = tl.load(b + i, mask=i < n).to(tl.float32)
        tl.store(y + i, (d * factor * weight + offset).to(tl.float16), mask=i < n)


def layernorm(x, w, b, y, R, N, eps):
    if N > 8192:
        long[(R,)](x, w, b, y, N, eps, BLOCK=4096, num_warps=16)
    else:
        block = max(32, triton.next_power_of_2(N))
        short[(R,)](x, w, b, y, N, eps, BLOCK=block, num_warps=min(8, max(1, block // 256)))
