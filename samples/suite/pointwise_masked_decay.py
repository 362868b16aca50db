"""Two branches chosen by a mask: a scaled value, or a decayed one."""

import torch

ROWS = 8192
COLUMNS = 8192


def masked_decay(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, 0.3 * x, torch.exp(-x.abs()) * torch.sign(x))


def inputs():
    return [torch.randn(ROWS, COLUMNS), torch.rand(ROWS, COLUMNS) > 0.4]
