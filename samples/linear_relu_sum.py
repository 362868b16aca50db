"""A linear layer whose activated features are summed: the features never need to be stored."""

import torch
from torch import nn

ROWS = 4096
WIDTH = 2048
FEATURES = 4096


class Model(nn.Module):
    def __init__(self, width: int, features: int):
        super().__init__()
        self.linear = nn.Linear(width, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)).sum(dim=-1)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH, FEATURES]
