"""Layer norm over channels, height and width together: long rows, few of them."""

import torch
from torch import nn

BATCH = 512
CHANNELS = 64
SIDE = 32


class Model(nn.Module):
    def __init__(self, channels: int, side: int):
        super().__init__()
        self.norm = nn.LayerNorm((channels, side, side))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, SIDE]
