# Expected: faster|equivalent|inconclusive|slower
import math

import triton
import triton.language as tl


# A program has some heads of one token, which share their sines and cosines.
@triton.jit
def heads(x, position, y, h, p, exponent, HEADS: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)[:, None]
    i = tl.arange(0, BLOCK)[None, :]
    inside = (head < h) & (i < p)
    at = (token * h + head) * 2 * p + i
    a = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x + at + p, mask=inside, other=0.0).to(tl.float32)
    angle = tl.load(position + token).to(tl.float32) * tl.exp2(i.to(tl.float32) * exponent)
    cosine = tl.cos(angle)
    sine = tl.sin(angle)
    tl.store(y + at, (a * cosine - b * sine).to(tl.bfloat16), mask=inside)
    tl.store(y + at + p, (b * cosine + a * sine).to(tl.bfloat16), mask=inside)


def rope(x, position, y, T, H, P, base):
    count = min(triton.next_power_of_2(H), 32 if T >= 1000 else 8)
    block = max(16, triton.next_power_of_2(P))
    warps = min(4, max(1, count * block // 256))
    heads[(T, triton.cdiv(H, count))](x, position, y, H, P, -math.log2(base) / P, HEADS=count, BLOCK=block, num_warps=warps)
