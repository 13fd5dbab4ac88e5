# FlashAttention, as PyTorch has it.
# Size: n=4096 small=128
# Tensor: q in bf16 8,16,n,64
# Tensor: k in bf16 8,16,n,64
# Tensor: v in bf16 8,16,n,64
# Tensor: y out bf16 8,16,n,64
import torch


def custom_kernel(data):
    q, k, v, y = data
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
