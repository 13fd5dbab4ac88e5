# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def blocks(x, y, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (r < rows) & (i < n)
    gate = tl.load(x + r * 2 * n + i, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + r * 2 * n + n + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + r * n + i, (gate * tl.sigmoid(gate) * up).to(tl.bfloat16), mask=inside)


def swiglu(x, y, R, N):
    block = min(1024, max(16, triton.next_power_of_2(N)))
    count = 1024 // block
    blocks[(triton.cdiv(R, count), triton.cdiv(N, block))](x, y, R, N, ROWS=count, BLOCK=block, num_warps=4)
