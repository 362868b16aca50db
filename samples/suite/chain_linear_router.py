"""A router of experts: scores, their softmax, and a penalty for uneven loads."""

import torch
from torch import nn

TOKENS = 65536
WIDTH = 1024
EXPERTS = 64


class Model(nn.Module):
    def __init__(self, width: int, experts: int):
        super().__init__()
        self.scores = nn.Linear(width, experts, bias=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        share = torch.softmax(self.scores(x) * 0.5, dim=-1)
        load = share.mean(dim=0)
        return share, (load * load).sum() * share.shape[-1]


def get_inputs():
    return [torch.randn(TOKENS, WIDTH)]


def get_init_inputs():
    return [WIDTH, EXPERTS]
