"""A controller's small network, where launching costs more than computing."""

import torch
from torch import nn

ROWS = 64
SENSORS = 48
HIDDEN = 256
MOTORS = 12


class Model(nn.Module):
    def __init__(self, sensors: int, hidden: int, motors: int):
        super().__init__()
        self.first = nn.Linear(sensors, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.second = nn.Linear(hidden, hidden)
        self.mean = nn.Linear(hidden, motors)
        self.spread = nn.Linear(hidden, motors)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.tanh(self.norm(self.first(x)))
        x = torch.tanh(self.second(x))
        return torch.tanh(self.mean(x)), torch.exp(self.spread(x).clamp(-5.0, 2.0))


def get_inputs():
    return [torch.randn(ROWS, SENSORS)]


def get_init_inputs():
    return [SENSORS, HIDDEN, MOTORS]
