"""A linear layer whose features are normalised in groups, then bounded and shifted."""

import torch
from torch import nn

ROWS = 32768
INPUTS = 1024
OUTPUTS = 1024
GROUPS = 16


class Model(nn.Module):
    def __init__(self, inputs: int, outputs: int, groups: int):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = nn.GroupNorm(groups, outputs)
        self.shift = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(self.norm(self.linear(x)), -2.0, 2.0) + self.shift


def get_inputs():
    return [torch.randn(ROWS, INPUTS)]


def get_init_inputs():
    return [INPUTS, OUTPUTS, GROUPS]
