"""A package, because PyTorch's is one."""
