"""A tagger of sequences: a recurrent layer, a norm, and the log probability of each tag."""

import torch
from torch import nn

BATCH = 64
STEPS = 64
WIDTH = 256
HIDDEN = 512
TAGS = 48


class Model(nn.Module):
    def __init__(self, width: int, hidden: int, tags: int):
        super().__init__()
        self.recurrent = nn.LSTM(width, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, tags)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.recurrent(x)
        return torch.log_softmax(self.head(torch.tanh(self.norm(states))), dim=-1)


def get_inputs():
    return [torch.randn(BATCH, STEPS, WIDTH)]


def get_init_inputs():
    return [WIDTH, HIDDEN, TAGS]
