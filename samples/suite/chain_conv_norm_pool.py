"""The stem of an image classifier: convolution, batch norm, ReLU, overlapping maxima."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH = 64
COLOURS = 3
FEATURES = 64
SIDE = 224
TASK = {"mode": "eval"}


class Model(nn.Module):
    def __init__(self, colours: int, features: int):
        super().__init__()
        self.conv = nn.Conv2d(colours, features, 7, stride=2, padding=3, bias=False)
        self.norm = nn.BatchNorm2d(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(torch.relu(self.norm(self.conv(x))), 3, stride=2, padding=1)


def get_inputs():
    return [torch.randn(BATCH, COLOURS, SIDE, SIDE)]


def get_init_inputs():
    return [COLOURS, FEATURES]
