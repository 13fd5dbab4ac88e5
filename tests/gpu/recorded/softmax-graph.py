# Expected: faster|equivalent|slower|inconclusive
# Captures a graph of its own the first time, with memory that only the graph works in, and launches it.
import torch

graphs = {}


def compute(x, y):
    e = torch.exp(x - x.amax(1, keepdim=True))
    y.copy_(e / e.sum(1, keepdim=True))


def softmax(x, y):
    if x.shape not in graphs:
        compute(x, y)
        torch.cuda.synchronize()
        graphs[x.shape] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[x.shape]):
            compute(x, y)
    graphs[x.shape].replay()
