# A module with weights of its own, which are part of the recording.
# Size: n=131072 small=64
# Tensor: x in f32 n,512
# Tensor: y out f32 n,512
import torch

torch.manual_seed(7)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(512, 256)
        self.second = torch.nn.Linear(256, 512)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))
