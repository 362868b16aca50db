"""Images through a narrow middle and back."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH = 64
COLOURS = 3
FEATURES = 32
SIDE = 96


class Model(nn.Module):
    def __init__(self, colours: int, features: int):
        super().__init__()
        self.down = nn.Conv2d(colours, features, 4, stride=2, padding=1)
        self.deep = nn.Conv2d(features, 2 * features, 4, stride=2, padding=1)
        self.rise = nn.ConvTranspose2d(2 * features, features, 4, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(features, colours, 4, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = F.elu(self.deep(F.elu(self.down(x))))
        return torch.sigmoid(self.up(F.elu(self.rise(inner))))


def get_inputs():
    return [torch.randn(BATCH, COLOURS, SIDE, SIDE)]


def get_init_inputs():
    return [COLOURS, FEATURES]
