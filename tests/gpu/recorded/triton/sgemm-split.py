# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


# Programs along the third axis share the inner dimension, and add what they have to C.
@triton.jit
def tiles(A, B, C, M, N, K, span, SPLIT: tl.constexpr, TALL: tl.constexpr, WIDE: tl.constexpr, DEPTH: tl.constexpr):
    m = tl.program_id(1) * TALL + tl.arange(0, TALL)
    n = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    start = tl.program_id(2) * span
    end = tl.minimum(start + span, K)
    k = start + tl.arange(0, DEPTH)
    a_at = A + m[:, None] * K + k[None, :]
    b_at = B + k[:, None] * N + n[None, :]
    sums = tl.zeros((TALL, WIDE), tl.float32)
    for at in range(start, end, DEPTH):
        rest = end - at
        i = tl.arange(0, DEPTH)
        a = tl.load(a_at, mask=(m[:, None] < M) & (i[None, :] < rest), other=0.0)
        b = tl.load(b_at, mask=(i[:, None] < rest) & (n[None, :] < N), other=0.0)
        sums = tl.dot(a, b, sums, input_precision="ieee")
        a_at += DEPTH
        b_at += DEPTH * N
    c_at = C + m[:, None] * N + n[None, :]
    inside = (m[:, None] < M) & (n[None, :] < N)
    if SPLIT:
        tl.atomic_add(c_at, sums, mask=inside, sem="relaxed")
    else:
        tl.store(c_at, sums, mask=inside)


def sgemm(A, B, C, M, N, K):
    tall, wide, depth = 64, 64, 32
    across, down = triton.cdiv(N, wide), triton.cdiv(M, tall)
    parts = max(1, min(264 // (across * down), K // 128))
    span = triton.cdiv(K, parts * depth) * depth
    parts = triton.cdiv(K, span)
    if parts > 1:
        C.zero_()
    tiles[(across, down, parts)](A, B, C, M, N, K, span, SPLIT=parts > 1, TALL=tall, WIDE=wide, DEPTH=depth, num_warps=8, num_stages=2)
