"""A separable convolution: each channel by itself, hard swish, then a mix of channels, bounded."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH = 128
CHANNELS = 96
FEATURES = 144
SIDE = 56


class Model(nn.Module):
    def __init__(self, channels: int, features: int):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 5, padding=2, groups=channels)
        self.mix = nn.Conv2d(channels, features, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu6(self.mix(F.hardswish(self.depthwise(x))))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FEATURES]
