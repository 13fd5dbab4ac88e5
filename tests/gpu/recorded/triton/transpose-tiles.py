# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def tiles(A, B, M, N, TALL: tl.constexpr, WIDE: tl.constexpr):
    m = tl.program_id(1) * TALL + tl.arange(0, TALL)
    n = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    v = tl.load(A + m[:, None] * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N))
    tl.store(B + n[:, None] * M + m[None, :], tl.trans(v), mask=(n[:, None] < N) & (m[None, :] < M))


def transpose(A, B, M, N):
    tiles[(triton.cdiv(N, 64), triton.cdiv(M, 32))](A, B, M, N, TALL=32, WIDE=64, num_warps=4)
