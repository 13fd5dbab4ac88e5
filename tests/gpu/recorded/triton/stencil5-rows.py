# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


# A program goes down ROWS rows and keeps the row above and the present one in registers.
@triton.jit
def rows(x, y, height, width, alpha, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(1) * ROWS
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = j < width
    inner = (j > 0) & (j < width - 1)
    up = tl.load(x + (first - 1) * width + j, mask=inside & (first > 0), other=0.0)
    centre = tl.load(x + first * width + j, mask=inside, other=0.0)
    for i in range(first, tl.minimum(first + ROWS, height)):
        at = x + i * width + j
        left = tl.load(at - 1, mask=inner, other=0.0)
        right = tl.load(at + 1, mask=inner, other=0.0)
        down = tl.load(at + width, mask=inside & (i < height - 1), other=0.0)
        moved = centre + alpha * (up + down + left + right - 4 * centre)
        tl.store(y + i * width + j, tl.where(inner & (i > 0) & (i < height - 1), moved, centre), mask=inside)
        up = centre
        centre = down


def stencil5(x, y, H, W, alpha):
    rows[(triton.cdiv(W, 512), triton.cdiv(H, 8))](x, y, H, W, alpha, ROWS=8, BLOCK=512, num_warps=4)
