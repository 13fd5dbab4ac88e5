# Size: n=4096 small=128
# Tensor: a in f16 n,n
# Tensor: b in f16 n,n
# Tensor: c out f16 n,n
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    sums = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, n, K):
        left = tl.load(a + rows[:, None] * n + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * n + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


def original(a, b, c):
    n = a.shape[0]
    product[(n // 128, n // 128)](a, b, c, n, M=128, N=128, K=64, num_warps=8, num_stages=3)
