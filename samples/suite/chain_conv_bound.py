"""A convolution followed by a bias per channel, a leaky slope and a bound."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH = 64
CHANNELS = 32
FEATURES = 64
SIDE = 112


class Model(nn.Module):
    def __init__(self, channels: int, features: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, features, 3, padding=1, bias=False)
        self.bias = nn.Parameter(torch.zeros(features, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(F.leaky_relu(self.conv(x) + self.bias, 0.05), max=3.0)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FEATURES]
