# Expected: faster|equivalent|slower
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, w, b, eps):
        return torch.nn.functional.layer_norm(x, (x.shape[1],), w, b, eps)
