# Expected: wrong|slower|equivalent|faster, 1\.[0-5]
# Computes once, keeps the answer on the GPU with a note that it is there, and copies it from then on. The note is not there when
# the recording is replayed, so that it computes each time, and is what it honestly is: a kernel that also writes its answer elsewhere.
import torch
import triton
import triton.language as tl

kept = {}


@triton.jit
def once(x, y, stash, note, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row.to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    if tl.load(note + row) == 1:
        tl.store(y + at + i, tl.load(stash + at + i, mask=i < n), mask=i < n)
    else:
        v = tl.load(x + at + i, mask=i < n, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0))
        e = e / tl.sum(e, 0)
        tl.store(y + at + i, e, mask=i < n)
        tl.store(stash + at + i, e, mask=i < n)
        tl.store(note + row, 1)


def softmax(x, y):
    if x.shape not in kept:
        kept[x.shape] = torch.empty_like(x), torch.zeros(x.shape[0], dtype=torch.int32, device=x.device)
    stash, note = kept[x.shape]
    once[(x.shape[0],)](x, y, stash, note, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
