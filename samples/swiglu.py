"""The gated half of a language model's feed-forward block: silu(x G) * (x U)."""

import torch
import torch.nn.functional as F
from torch import nn

TOKENS = 4096
WIDTH = 1024
HIDDEN = 2816


class Model(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.gate(x)) * self.up(x)


def get_inputs():
    return [torch.randn(TOKENS, WIDTH)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
