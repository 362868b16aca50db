"""A sum of two images, one with its channels first and one with them last, then ReLU6."""

import torch

BATCH = 64
CHANNELS = 256
SIDE = 56


def two_layouts(first: torch.Tensor, last: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    total = first + last.permute(0, 3, 1, 2) + bias.view(1, -1, 1, 1)
    return total.clamp(0.0, 6.0)


def inputs():
    first = torch.randn(BATCH, CHANNELS, SIDE, SIDE)
    last = torch.randn(BATCH, SIDE, SIDE, CHANNELS)
    return [first, last, torch.randn(CHANNELS)]
