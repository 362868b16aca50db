"""Overlapping maxima of feature maps, with a stride of two."""

import torch
from torch import nn

BATCH = 64
CHANNELS = 64
SIDE = 128


class Model(nn.Module):
    def __init__(self, window: int, stride: int, padding: int):
        super().__init__()
        self.pool = nn.MaxPool2d(window, stride, padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [3, 2, 1]
