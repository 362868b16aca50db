"""The feed-forward block of a transformer in bfloat16: linear, GELU, linear, plus its input."""

import torch
from torch import nn

TOKENS = 4096
WIDTH = 1024
HIDDEN = 4 * WIDTH


class Model(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.expand = nn.Linear(width, hidden, dtype=torch.bfloat16)
        self.activation = nn.GELU()
        self.contract = nn.Linear(hidden, width, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.contract(self.activation(self.expand(x)))


def get_inputs():
    return [torch.randn(TOKENS, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
