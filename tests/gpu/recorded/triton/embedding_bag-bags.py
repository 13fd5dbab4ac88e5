# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


# STEP rows of the table are on their way at the same time.
@triton.jit
def bags(table, row, w, y, length, d, STEP: tl.constexpr, BLOCK: tl.constexpr):
    bag = tl.program_id(0)
    column = tl.arange(0, BLOCK)[None, :]
    sums = tl.zeros((STEP, BLOCK), tl.float32)
    for at in range(0, length, STEP):
        i = at + tl.arange(0, STEP)[:, None]
        which = tl.load(row + bag * length + i, mask=i < length, other=0)
        weight = tl.load(w + bag * length + i, mask=i < length, other=0.0)
        element = tl.load(table + which * d + column, mask=(i < length) & (column < d), other=0.0)
        sums += weight * element.to(tl.float32)
    column = tl.arange(0, BLOCK)
    tl.store(y + bag * d + column, tl.sum(sums, 0), mask=column < d)


def embedding_bag(table, row, w, y, B, L, D):
    step = min(16, triton.next_power_of_2(L))
    block = max(16, triton.next_power_of_2(D))
    bags[(B,)](table, row, w, y, L, D, STEP=step, BLOCK=block, num_warps=min(4, max(1, step * block // 1024)))
