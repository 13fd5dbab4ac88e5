# Two streams that part and meet again. Each kernel leaves most of the GPU idle.
# Size: n=96 small=4
# Tensor: x in f32 n,4096
# Tensor: y out f32 n,4096
import torch
import triton
import triton.language as tl


@triton.jit
def settle(x, y, steps, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for _ in range(steps):
        v = v * 0.999 + 0.125 * tl.exp(-v * v)
    tl.store(y + i, v)


def original(x, y):
    half = x.shape[0] // 2
    here, other = torch.cuda.current_stream(), torch.cuda.Stream()
    other.wait_stream(here)
    settle[(half,)](x[:half], y[:half], 4000, BLOCK=4096, num_warps=8)
    with torch.cuda.stream(other):
        settle[(half,)](x[half:], y[half:], 4000, BLOCK=4096, num_warps=8)
    here.wait_stream(other)
