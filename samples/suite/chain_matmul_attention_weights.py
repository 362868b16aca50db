"""Attention weights with a bias of the distance: product, scale, bias, softmax."""

import torch
from torch import nn

HEADS = 96
QUERIES = 1024
KEYS = 1024
WIDTH = 64


class Model(nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(query, key.transpose(-2, -1)) * 0.125
        return torch.softmax(scores + bias, dim=-1)


def get_inputs():
    query = torch.randn(HEADS, QUERIES, WIDTH)
    key = torch.randn(HEADS, KEYS, WIDTH)
    return [query, key, torch.randn(QUERIES, KEYS)]
