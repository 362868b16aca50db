"""Three linear layers with squared ReLU between them."""

import torch
from torch import nn

ROWS = 8192
WIDTH = 1024
HIDDEN = 2048


class Model(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.third = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x)).square()
        x = torch.relu(self.second(x)).square()
        return self.third(x)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
