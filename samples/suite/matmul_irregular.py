"""A product none of whose sizes divides by anything."""

import torch

ROWS = 4099
INNER = 2531
COLUMNS = 3943


def irregular(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.matmul(a, b)


def inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, COLUMNS)]
