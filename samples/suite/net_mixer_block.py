"""Patches mixed across positions, then across channels."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH = 64
PATCHES = 196
WIDTH = 512


class Model(nn.Module):
    def __init__(self, patches: int, width: int):
        super().__init__()
        self.patch_norm = nn.LayerNorm(width)
        self.patch_in = nn.Linear(patches, 2 * patches)
        self.patch_out = nn.Linear(2 * patches, patches)
        self.width_norm = nn.LayerNorm(width)
        self.width_in = nn.Linear(width, 4 * width)
        self.width_out = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned = self.patch_norm(x).transpose(1, 2)
        x = x + self.patch_out(F.gelu(self.patch_in(turned))).transpose(1, 2)
        return x + self.width_out(F.gelu(self.width_in(self.width_norm(x))))


def get_inputs():
    return [torch.randn(BATCH, PATCHES, WIDTH)]


def get_init_inputs():
    return [PATCHES, WIDTH]
