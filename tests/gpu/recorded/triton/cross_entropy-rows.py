# Expected: faster|equivalent|inconclusive|slower
import triton
import triton.language as tl


@triton.jit
def short(logit, target, upstream, loss, dlogit, v, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    hit = tl.load(target + r) % v
    x = tl.load(logit + r * v + i, mask=i < v, other=-float("inf")).to(tl.float32)
    most = tl.max(x, 0)
    e = tl.exp(x - most)
    total = tl.sum(e, 0)
    gradient = tl.load(upstream + r) * (e / total - tl.where(i == hit, 1.0, 0.0))
    tl.store(dlogit + r * v + i, gradient.to(tl.bfloat16), mask=i < v)
    tl.store(loss + r, most + tl.log(total) - tl.load(logit + r * v + hit).to(tl.float32))


# v is at least BLOCK: every lane has a finite maximum after the first round.
@triton.jit
def long(logit, target, upstream, loss, dlogit, v, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    logit += r * v
    dlogit += r * v
    hit = tl.load(target + r) % v
    grad = tl.load(upstream + r)
    lane_most = tl.full((BLOCK,), -float("inf"), tl.float32)
    lane_total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, v, BLOCK):
        i = at + tl.arange(0, BLOCK)
        x = tl.load(logit + i, mask=i < v, other=-float("inf")).to(tl.float32)
        now = tl.maximum(lane_most, x)
        lane_total = lane_total * tl.exp(lane_most - now) + tl.exp(x - now)
        lane_most = now
    most = tl.max(lane_most, 0)
    total = tl.sum(lane_total * tl.exp(lane_most - most), 0)
    for at in range(0, v, BLOCK):
        i = at + tl.arange(0, BLOCK)
        x = tl.load(logit + i, mask=i < v, other=0.0).to(tl.float32)
        gradient = grad * (tl.exp(x - most) / total - tl.where(i == hit, 1.0, 0.0))
        tl.store(dlogit + i, gradient.to(tl.bfloat16), mask=i < v)
    tl.store(loss + r, most + tl.log(total) - tl.load(logit + hit).to(tl.float32))


def cross_entropy(logit, target, upstream, loss, dlogit, R, V):
    if V > 8192:
        long[(R,)](logit, target, upstream, loss, dlogit, V, BLOCK=8192, num_warps=32)
    else:
        block = max(32, triton.next_power_of_2(V))
        short[(R,)](logit, target, upstream, loss, dlogit, V, BLOCK=block, num_warps=min(8, max(1, block // 256)))
