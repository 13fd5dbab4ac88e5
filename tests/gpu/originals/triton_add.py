# Size: n=67108864 small=4096
# Tensor: x in f32 n
# Tensor: w in f32 n
# Tensor: y out f32 n
import triton
import triton.language as tl


@triton.jit
def add(x, w, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + tl.load(w + i, mask=i < n), mask=i < n)


def original(x, w, y):
    add[(triton.cdiv(x.numel(), 1024),)](x, w, y, x.numel(), BLOCK=1024)
