# Expected: faster|equivalent|inconclusive|slower
import torch
import triton
import triton.language as tl


# Each program adds up a span of its own; the same kernel then adds up the spans' sums.
@triton.jit
def spans(x, y, n, span, BLOCK: tl.constexpr):
    start = tl.program_id(0) * span
    end = tl.minimum(start + span, n)
    sums = tl.zeros((BLOCK,), tl.float32)
    for at in range(start, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        sums += tl.load(x + i, mask=i < end, other=0.0)
    tl.store(y + tl.program_id(0), tl.sum(sums, 0))


def reduce_sum(x, y, N):
    block = 2048
    span = triton.cdiv(N, 1024 * block) * block
    count = triton.cdiv(N, span)
    part = torch.empty(count, dtype=torch.float32, device=x.device)
    spans[(count,)](x, part, N, span, BLOCK=block, num_warps=4)
    spans[(1,)](part, y, count, 1024, BLOCK=1024, num_warps=4)
