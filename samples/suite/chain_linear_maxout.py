"""Maxout: the largest of four linear pieces for each feature, then a gain and a bound."""

import torch
from torch import nn

ROWS = 16384
INPUTS = 1024
FEATURES = 512
PIECES = 4


class Model(nn.Module):
    def __init__(self, inputs: int, features: int, pieces: int):
        super().__init__()
        self.linear = nn.Linear(inputs, features * pieces)
        self.pieces = pieces

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pieces = self.linear(x).unflatten(-1, (-1, self.pieces))
        return torch.clamp(pieces.amax(dim=-1) * 1.5, max=8.0)


def get_inputs():
    return [torch.randn(ROWS, INPUTS)]


def get_init_inputs():
    return [INPUTS, FEATURES, PIECES]
