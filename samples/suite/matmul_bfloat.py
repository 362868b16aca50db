"""A large product in bfloat16."""

import torch

ROWS = 8192
INNER = 4096
COLUMNS = 6144


def bfloat(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


def inputs():
    a = torch.randn(ROWS, INNER, dtype=torch.bfloat16)
    return [a, torch.randn(INNER, COLUMNS, dtype=torch.bfloat16)]
