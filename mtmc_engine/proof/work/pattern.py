"""What an input promises beyond its shape: a triangle of zeros, symmetry, ascending order.

An operator for triangular matrices may be right on triangular matrices only, and a kernel may
rely on that: contents that are drawn anew keep what the file's own inputs have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

# Smaller ones are triangular or in order by chance.
_LEAST_SIDE = 3
_LEAST_ORDERED = 8


@dataclass(frozen=True)
class Pattern:
    """upper, lower: nothing but zeros on the other side of the diagonal of each matrix.

    ascending: every row along the last dimension is in order, and not all equal.
    """

    upper: bool = False
    lower: bool = False
    symmetric: bool = False
    ascending: bool = False

    @property
    def of_matrices(self) -> bool:
        """Whether rows may not be exchanged for one another."""
        return self.upper or self.lower or self.symmetric

    def restored(self, value: torch.Tensor) -> torch.Tensor:
        """`value`, of any shape of the same rank, with the pattern imposed on it."""
        if self.upper:
            value = value.triu()
        if self.lower:
            value = value.tril()
        if self.symmetric and value.shape[-1] == value.shape[-2]:
            value = value.tril() + value.tril(-1).mT
        return value.sort(dim=-1).values if self.ascending and value.numel() else value


def pattern_of(value: Any) -> Pattern:
    """The pattern of a tensor; an empty one of anything else."""
    if not isinstance(value, torch.Tensor) or value.is_complex() or value.dtype == torch.bool:
        return Pattern()
    square = value.dim() >= 2 and value.shape[-1] == value.shape[-2] >= _LEAST_SIDE
    if not square or not value.numel() or not value.is_floating_point():
        return Pattern(ascending=_ascending(value))
    if not bool(value.any()):
        return Pattern()
    upper = not bool(value.tril(-1).any())
    lower = not bool(value.triu(1).any())
    symmetric = not (upper or lower) and bool((value == value.mT).all())
    constant = symmetric and bool((value == value.reshape(-1)[0]).all())
    return Pattern(upper, lower, symmetric and not constant, False)


def _ascending(value: torch.Tensor) -> bool:
    if value.dim() < 1 or not value.numel() or value.shape[-1] < _LEAST_ORDERED:
        return False
    steps = value[..., 1:] >= value[..., :-1]
    return bool(steps.all()) and bool((value[..., -1] > value[..., 0]).all())
