"""A sigmoid gate with its own slope, a bias for each column, and bounds."""

import torch

ROWS = 8192
COLUMNS = 8192


def gate(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    shifted = x + bias
    return (shifted * torch.sigmoid(1.7 * shifted)).clamp(-4.0, 6.0)


def inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS)]
