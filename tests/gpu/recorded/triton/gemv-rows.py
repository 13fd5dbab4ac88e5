# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def rows(A, x, y, m, k, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    for at in range(0, k, BLOCK):
        i = at + tl.arange(0, BLOCK)[None, :]
        u = tl.load(A + r[:, None] * k + i, mask=(r[:, None] < m) & (i < k), other=0.0).to(tl.float32)
        v = tl.load(x + i, mask=i < k, other=0.0).to(tl.float32)
        sums += u * v
    tl.store(y + r, tl.sum(sums, 1), mask=r < m)


def gemv(A, x, y, M, K):
    # Several rows share what is loaded of x, unless there are too few to occupy the device.
    count, block = (4, 1024) if M >= 4096 else (1, 4096)
    block = min(block, max(32, triton.next_power_of_2(K)))
    rows[(triton.cdiv(M, count),)](A, x, y, M, K, ROWS=count, BLOCK=block, num_warps=min(4, max(1, count * block // 256)))
