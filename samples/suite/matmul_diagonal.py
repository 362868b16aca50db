"""A diagonal matrix written out and multiplied: a scaling of rows in disguise."""

import torch

SIZE = 6144
COLUMNS = 3072


def diagonal(scale: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.diag(scale) @ x


def inputs():
    return [torch.randn(SIZE), torch.randn(SIZE, COLUMNS)]
