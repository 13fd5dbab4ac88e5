# cuBLAS in tf32.
# Size: n=4096 small=64
# Tensor: a in f32 n,n
# Tensor: b in f32 n,n
# Tensor: y out f32 n,n
import torch

torch.backends.cuda.matmul.allow_tf32 = True


def custom_kernel(data):
    a, b, y = data
    return a @ b
