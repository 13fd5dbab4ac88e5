# The reference of problems/cuda/softmax, in Python. The scale is the same: what errors of one unit in the arguments and results of exp
# do to an element, and 1e-30: what lies below the least float may be 0.
def reference(x):
    d = x - x.max(dim=1, keepdim=True).values
    e = d.exp()
    y = e / e.sum(dim=1, keepdim=True)
    weighted = (y * (1 - d)).sum(dim=1, keepdim=True)
    return y, y * (1 - d + weighted) + 1e-30
