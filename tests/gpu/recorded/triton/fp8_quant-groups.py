# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def groups(x, q, scale, rows, n, eps, COUNT: tl.constexpr):
    across = tl.cdiv(n, 128)
    group = tl.program_id(0) * COUNT + tl.arange(0, COUNT)
    r = (group // across)[:, None]
    i = (group % across)[:, None] * 128 + tl.arange(0, 128)[None, :]
    inside = (r < rows) & (i < n)
    v = tl.load(x + r * n + i, mask=inside, other=0.0).to(tl.float32)
    factor = tl.maximum(tl.max(tl.abs(v), 1), eps) / 448
    tl.store(scale + group, factor, mask=group < rows * across)
    quotient = v * (1 / factor)[:, None]
    tl.store(q + r * n + i, quotient.to(tl.float8e4nv), mask=inside)


def fp8_quant(x, q, scale, R, N, eps):
    count = R * triton.cdiv(N, 128)
    groups[(triton.cdiv(count, 16),)](x, q, scale, R, N, eps, COUNT=16, num_warps=4)
