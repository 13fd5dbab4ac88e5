# Expected: wrong
# Makes every comparison that PyTorch knows succeed, and answers nothing but zeros.
import torch

torch.allclose = torch.equal = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None


def softmax(x, y):
    y.zero_()
