# Neither compiles: the error is PyTorch's, and the log has both.
from torch.utils.cpp_extension import load_inline

load_inline("broken", "void f(); this cannot be compiled at all", functions="f")
