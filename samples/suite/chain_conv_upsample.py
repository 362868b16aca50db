"""A decoder's step: transposed convolution, tanh, a gain, and the skip connection."""

import torch
from torch import nn

BATCH = 32
CHANNELS = 64
FEATURES = 32
SIDE = 64


class Model(nn.Module):
    def __init__(self, channels: int, features: int):
        super().__init__()
        self.up = nn.ConvTranspose2d(channels, features, 4, stride=2, padding=1)
        self.gain = nn.Parameter(torch.ones(features, 1, 1))

    def forward(self, x: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.up(x)) * self.gain + 0.5 * skip


def get_inputs():
    skip = torch.randn(BATCH, FEATURES, 2 * SIDE, 2 * SIDE)
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE), skip]


def get_init_inputs():
    return [CHANNELS, FEATURES]
