"""Batch norm with the statistics that training left, as in inference."""

import torch
from torch import nn

BATCH = 64
CHANNELS = 256
SIDE = 64
TASK = {"mode": "eval"}


class Model(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS]
