"""Half of a diffusion model's block: convolution, the time's shift, group norm, SiLU."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH = 16
CHANNELS = 192
SIDE = 64
GROUPS = 32


class Model(nn.Module):
    def __init__(self, channels: int, groups: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        return F.silu(self.norm(self.conv(x) + time[:, :, None, None]))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE), torch.randn(BATCH, CHANNELS)]


def get_init_inputs():
    return [CHANNELS, GROUPS]
