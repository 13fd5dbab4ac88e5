# The same, but it looks at a value, which cannot be recorded. The line that does is the fifth.
def reference(x):
    d = x - x.max(dim=1, keepdim=True).values
    e = d.exp()
    if e.sum().item() == 0:
        e = e + 1
    y = e / e.sum(dim=1, keepdim=True)
    return y, y
