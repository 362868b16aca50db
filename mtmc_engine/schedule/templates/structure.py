"""Matrices of a known structure."""

from __future__ import annotations

from collections.abc import Sequence

from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Dim, leaves
from mtmc_engine.schedule.templates.tensors import Band, Tensor, Value


def diagonal_of(matrix: Tensor) -> Value | None:
    """The vector on the diagonal of a matrix that is zero elsewhere, None for other matrices."""
    kept = _kept(matrix, fn.EQ, matrix.dims)
    return kept if kept is not None and leaves(kept.axes) == leaves(matrix.dims[0]) else None


def triangle_of(matrix: Tensor) -> tuple[Tensor, Band]:
    """The loaded matrix that a triangle with its diagonal is cut from, and which one it is.

    The matrix itself and "" where it is not known to be triangular.
    """
    bands: tuple[tuple[Band, fn.Function], ...] = (("lower", fn.LE), ("upper", fn.GE))
    for band, function in bands:
        kept = _kept(matrix, function, matrix.dims[::-1])
        if kept is not None and kept.kind == "load":
            return Tensor(kept, matrix.dims), band
    return matrix, ""


def _kept(matrix: Tensor, function: fn.Function, compared: Sequence[Dim]) -> Value | None:
    """x of where(function of the positions along `compared`, x, 0)."""
    value = matrix.value
    if len(matrix.dims) != 2 or value.function is not fn.WHERE or value.args[2] != 0:
        return None
    condition, kept = value.args[:2]
    if not isinstance(condition, Value) or not isinstance(kept, Value):
        return None
    fits = condition.function is function and all(map(_walks, condition.args, compared))
    return kept if fits else None


def _walks(arg: object, dim: Dim) -> bool:
    """Whether an argument is the position along a dimension."""
    return isinstance(arg, Value) and arg.kind == "index" and leaves(arg.over) == leaves(dim)
