"""The free energy of an energy model: hidden units' softplus summed, less the visible part."""

import torch
import torch.nn.functional as F
from torch import nn

ROWS = 32768
VISIBLE = 784
HIDDEN = 1024


class Model(nn.Module):
    def __init__(self, visible: int, hidden: int):
        super().__init__()
        self.hidden = nn.Linear(visible, hidden)
        self.bias = nn.Parameter(torch.zeros(visible))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -F.softplus(self.hidden(x)).sum(dim=-1) - (x * self.bias).sum(dim=-1)


def get_inputs():
    return [torch.rand(ROWS, VISIBLE)]


def get_init_inputs():
    return [VISIBLE, HIDDEN]
