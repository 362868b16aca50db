"""Many middle-sized products at once."""

import torch

BATCH = 96
ROWS = 1024
INNER = 512
COLUMNS = 640


def batched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.bmm(a, b)


def inputs():
    return [torch.randn(BATCH, ROWS, INNER), torch.randn(BATCH, INNER, COLUMNS)]
