"""Embeddings of a user and of items, their products, and a small network on top."""

import torch
from torch import nn

BATCH = 16384
FIELDS = 16
ENTRIES = 100000
WIDTH = 64


class Model(nn.Module):
    def __init__(self, entries: int, fields: int, width: int):
        super().__init__()
        self.table = nn.Embedding(entries, width)
        self.dense = nn.Linear(13, width)
        self.hidden = nn.Linear((fields + 1) * (fields + 1) + width, 256)
        self.head = nn.Linear(256, 1)

    def forward(self, numbers: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        dense = torch.relu(self.dense(numbers))
        vectors = torch.cat((dense[:, None, :], self.table(indices)), dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        hidden = torch.relu(self.hidden(torch.cat((dense, products), dim=-1)))
        return torch.sigmoid(self.head(hidden)).squeeze(-1)


def get_inputs():
    return [torch.randn(BATCH, 13), torch.randint(0, ENTRIES, (BATCH, FIELDS))]


def get_init_inputs():
    return [ENTRIES, FIELDS, WIDTH]
