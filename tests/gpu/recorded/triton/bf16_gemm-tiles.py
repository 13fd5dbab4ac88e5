# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


# Programs go through C in stripes of eight tiles in height, so that neighbours share tiles of A and B in the cache.
@triton.jit
def tiles(A, B, C, M, N, K, TALL: tl.constexpr, WIDE: tl.constexpr, DEPTH: tl.constexpr):
    down = tl.cdiv(M, TALL)
    stripe = 8 * tl.cdiv(N, WIDE)
    top = tl.program_id(0) // stripe * 8
    height = tl.minimum(down - top, 8)
    inner = tl.program_id(0) % stripe
    m = (top + inner % height) * TALL + tl.arange(0, TALL)[:, None]
    n = inner // height * WIDE + tl.arange(0, WIDE)[None, :]
    across = tl.arange(0, DEPTH)[None, :]
    below = tl.arange(0, DEPTH)[:, None]
    sums = tl.zeros((TALL, WIDE), tl.float32)
    for at in range(0, K, DEPTH):
        a = tl.load(A + m * K + at + across, mask=(m < M) & (at + across < K), other=0.0)
        b = tl.load(B + (at + below) * N + n, mask=(at + below < K) & (n < N), other=0.0)
        sums = tl.dot(a, b, sums)
    tl.store(C + m * N + n, sums.to(tl.bfloat16), mask=(m < M) & (n < N))


def bf16_gemm(A, B, C, M, N, K):
    if triton.cdiv(M, 128) * triton.cdiv(N, 128) >= 100:
        tall, wide, warps = 128, 128, 8
    else:
        tall, wide, warps = 64, 64 if M > 64 else 32, 4
    count = triton.cdiv(M, tall) * triton.cdiv(N, wide)
    tiles[(count,)](A, B, C, M, N, K, TALL=tall, WIDE=wide, DEPTH=64, num_warps=warps, num_stages=4)
