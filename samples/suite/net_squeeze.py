"""Channels weighted by what the whole image holds, after a convolution."""

import torch
from torch import nn

BATCH = 64
CHANNELS = 64
FEATURES = 128
SIDE = 56
REDUCED = 16


class Model(nn.Module):
    def __init__(self, channels: int, features: int, reduced: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, features, 3, padding=1)
        self.squeeze = nn.Linear(features, reduced)
        self.excite = nn.Linear(reduced, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        maps = torch.relu(self.conv(x))
        weight = torch.relu(self.squeeze(maps.mean(dim=(2, 3))))
        return maps * torch.sigmoid(self.excite(weight))[:, :, None, None]


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FEATURES, REDUCED]
