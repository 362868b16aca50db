"""A gated convolution over a sequence, normalised over its channels and added to its input."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH = 32
CHANNELS = 256
STEPS = 2048


class Model(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv1d(channels, 2 * channels, 5, padding=2)
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gated = F.glu(self.conv(x), dim=1)
        return x + self.norm(gated.transpose(1, 2)).transpose(1, 2)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, STEPS)]


def get_init_inputs():
    return [CHANNELS]
