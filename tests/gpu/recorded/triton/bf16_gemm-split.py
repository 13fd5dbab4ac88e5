# Expected: faster|equivalent|inconclusive|slower
import torch
import triton
import triton.language as tl


@triton.jit
def tiles(A, B, out, M, N, K, span, TILE: tl.constexpr, DEPTH: tl.constexpr):
    m = tl.program_id(1) * TILE + tl.arange(0, TILE)[:, None]
    n = tl.program_id(0) * TILE + tl.arange(0, TILE)[None, :]
    start = tl.program_id(2) * span
    end = tl.minimum(start + span, K)
    sums = tl.zeros((TILE, TILE), tl.float32)
    for at in range(start, end, DEPTH):
        across = at + tl.arange(0, DEPTH)[None, :]
        down = at + tl.arange(0, DEPTH)[:, None]
        a = tl.load(A + m * K + across, mask=(m < M) & (across < end), other=0.0)
        b = tl.load(B + down * N + n, mask=(down < end) & (n < N), other=0.0)
        sums = tl.dot(a, b, sums)
    out += tl.program_id(2) * M * N
    tl.store(out + m * N + n, sums.to(out.dtype.element_ty), mask=(m < M) & (n < N))


@triton.jit
def add(part, C, size, parts, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for p in range(parts):
        sums += tl.load(part + p * size + i, mask=i < size, other=0.0)
    tl.store(C + i, sums.to(tl.bfloat16), mask=i < size)


def bf16_gemm(A, B, C, M, N, K):
    across, down = triton.cdiv(N, 64), triton.cdiv(M, 64)
    parts = max(1, min(264 // (across * down), K // 256))
    span = triton.cdiv(K, parts * 64) * 64
    parts = triton.cdiv(K, span)
    out = C if parts == 1 else torch.empty((parts, M, N), dtype=torch.float32, device=C.device)
    tiles[(across, down, parts)](A, B, out, M, N, K, span, TILE=64, DEPTH=64, num_warps=4, num_stages=4)
    if parts > 1:
        add[(triton.cdiv(M * N, 1024),)](out, C, M * N, parts, BLOCK=1024, num_warps=4)
