"""A small result over a very long inner dimension."""

import torch

ROWS = 320
INNER = 196608
COLUMNS = 256


def deep(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, COLUMNS)]
