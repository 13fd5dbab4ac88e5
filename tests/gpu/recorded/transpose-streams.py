# Expected: faster|equivalent|slower
# Two streams that part and meet again. Each half keeps the memory busy, so little may come of it.
import torch


def transpose(A, B):
    half = A.shape[1] // 2
    here, other = torch.cuda.current_stream(), torch.cuda.Stream()
    other.wait_stream(here)
    B[:half].copy_(A[:, :half].t())
    with torch.cuda.stream(other):
        B[half:].copy_(A[:, half:].t())
    here.wait_stream(other)
