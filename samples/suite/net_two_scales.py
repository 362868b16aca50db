"""An image at two scales: half the size and back again, joined with what was there before."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH = 32
CHANNELS = 32
SIDE = 128
GROUPS = 8


class Model(nn.Module):
    def __init__(self, channels: int, groups: int):
        super().__init__()
        self.fine = nn.Conv2d(channels, channels, 3, padding=1)
        self.fine_norm = nn.GroupNorm(groups, channels)
        self.coarse = nn.Conv2d(channels, channels, 3, padding=1)
        self.coarse_norm = nn.GroupNorm(groups, channels)
        self.join = nn.Conv2d(2 * channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fine = F.silu(self.fine_norm(self.fine(x)))
        coarse = F.silu(self.coarse_norm(self.coarse(F.avg_pool2d(fine, 2))))
        back = F.interpolate(coarse, scale_factor=2, mode="nearest")
        return x + self.join(torch.cat((fine, back), dim=1))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, GROUPS]
