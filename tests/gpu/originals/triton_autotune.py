# Configurations between which there is a clear choice.
# Size: n=67108864 small=4096
# Tensor: x in f32 n
# Tensor: y out f32 n
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}, num_warps=4), triton.Config({"BLOCK": 16}, num_warps=1)], key=["n"])
@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 1.5 + 2.0, mask=i < n)


def original(x, y):
    scale[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
