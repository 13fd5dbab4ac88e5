# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def tiles(a, b, c, M, N, K, TALL: tl.constexpr, WIDE: tl.constexpr, DEPTH: tl.constexpr):
    matrix = tl.program_id(0)
    count = tl.cdiv(N, WIDE)
    m = tl.program_id(1) // count * TALL + tl.arange(0, TALL)[:, None]
    n = tl.program_id(1) % count * WIDE + tl.arange(0, WIDE)[None, :]
    a += matrix * M * K
    b += matrix * K * N
    sums = tl.zeros((TALL, WIDE), tl.float32)
    for at in range(0, K, DEPTH):
        across = at + tl.arange(0, DEPTH)[None, :]
        down = at + tl.arange(0, DEPTH)[:, None]
        left = tl.load(a + m * K + across, mask=(m < M) & (across < K), other=0.0)
        right = tl.load(b + down * N + n, mask=(down < K) & (n < N), other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee")
    tl.store(c + matrix * M * N + m * N + n, sums, mask=(m < M) & (n < N))


def side(length):
    """The tile that computes least beyond the border; of several, the largest."""
    return min((64, 32, 16), key=lambda tile: triton.cdiv(length, tile) * tile)


def batched_gemm(a, b, c, B, M, N, K):
    tall, wide = side(M), side(N)
    grid = B, triton.cdiv(M, tall) * triton.cdiv(N, wide)
    warps = min(4, max(1, tall * wide // 512))
    tiles[grid](a, b, c, M, N, K, TALL=tall, WIDE=wide, DEPTH=16 if K <= 16 else 32, num_warps=warps, num_stages=2)
