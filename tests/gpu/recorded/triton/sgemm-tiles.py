# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def tiles(A, B, C, M, N, K, TILE: tl.constexpr, DEPTH: tl.constexpr):
    m = tl.program_id(1) * TILE + tl.arange(0, TILE)[:, None]
    n = tl.program_id(0) * TILE + tl.arange(0, TILE)[None, :]
    sums = tl.zeros((TILE, TILE), tl.float32)
    for at in range(0, K, DEPTH):
        across = at + tl.arange(0, DEPTH)[None, :]
        down = at + tl.arange(0, DEPTH)[:, None]
        a = tl.load(A + m * K + across, mask=(m < M) & (across < K), other=0.0)
        b = tl.load(B + down * N + n, mask=(down < K) & (n < N), other=0.0)
        sums = tl.dot(a, b, sums, input_precision="ieee")
    tl.store(C + m * N + n, sums, mask=(m < M) & (n < N))


def sgemm(A, B, C, M, N, K):
    # Small tiles where large ones would leave multiprocessors without work.
    tile = 64 if triton.cdiv(M, 64) * triton.cdiv(N, 64) >= 132 else 32
    grid = triton.cdiv(N, tile), triton.cdiv(M, tile)
    tiles[grid](A, B, C, M, N, K, TILE=tile, DEPTH=16, num_warps=4, num_stages=3)
