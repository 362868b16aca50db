"""Rotary position embedding: the halves of each head are turned by an angle of the position."""

import torch
from torch import nn

BATCH = 8
HEADS = 32
TOKENS = 2048
WIDTH = 128


class Model(nn.Module):
    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        turned = torch.cat((-second, first), dim=-1)
        return x * cos + turned * sin


def get_inputs():
    angle = torch.rand(TOKENS, WIDTH) * 6.28
    return [torch.randn(BATCH, HEADS, TOKENS, WIDTH), angle.cos(), angle.sin()]
