"""In half precision: one projection, split in two, one half gating the other."""

import torch
import torch.nn.functional as F
from torch import nn

TOKENS = 16384
WIDTH = 2048
HIDDEN = 2560


class Model(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.both = nn.Linear(width, 2 * hidden, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value, gate = self.both(x).chunk(2, dim=-1)
        return torch.tanh(value) * F.silu(gate)


def get_inputs():
    return [torch.randn(TOKENS, WIDTH, dtype=torch.float16)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
