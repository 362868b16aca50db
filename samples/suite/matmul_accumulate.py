"""A scaled product added to a scaled matrix."""

import torch

ROWS = 6144
INNER = 2048
COLUMNS = 4096


def accumulate(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.addmm(c, a, b, beta=0.5, alpha=0.25)


def inputs():
    return [
        torch.randn(ROWS, COLUMNS),
        torch.randn(ROWS, INNER),
        torch.randn(INNER, COLUMNS),
    ]
