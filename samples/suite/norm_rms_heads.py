"""RMS norm of every attention head in half precision, computed in single."""

import torch
from torch import nn

BATCH = 8
TOKENS = 4096
HEADS = 32
WIDTH = 128


class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
        return (wide * scale * self.weight).to(x.dtype)


def get_inputs():
    return [torch.randn(BATCH, TOKENS, HEADS, WIDTH, dtype=torch.float16)]


def get_init_inputs():
    return [WIDTH]
