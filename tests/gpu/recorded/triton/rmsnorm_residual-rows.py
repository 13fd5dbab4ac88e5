# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def tiles(x, h, w, y, rows, n, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.arange(0, BLOCK)[None, :]
    inside = (r < rows) & (i < n)
    at = r * n + i
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) + tl.load(h + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(w + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(h + at, v.to(tl.bfloat16), mask=inside)
    factor = tl.rsqrt(tl.sum(v * v, 1, keep_dims=True) / n + eps)
    tl.store(y + at, (v * factor * weight).to(tl.bfloat16), mask=inside)


def rmsnorm_residual(x, h, w, y, R, N, eps):
    block = max(16, triton.next_power_of_2(N))  # 8192 at most
    count = max(1, 1024 // block)
    tiles[(triton.cdiv(R, count),)](x, h, w, y, R, N, eps, ROWS=count, BLOCK=block, num_warps=min(16, max(4, block // 512)))
