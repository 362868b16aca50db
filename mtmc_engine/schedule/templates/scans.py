"""Values that keep what a fold is up to each position of a dimension."""

from __future__ import annotations

from mtmc_engine.schedule.templates.axes import Dim
from mtmc_engine.schedule.templates.tensors import Builder, Fold, Tensor, Value


def scan(b: Builder, fold: Fold, tensor: Tensor, dim: int, hint: str = "") -> Tensor:
    """What a fold along one dimension is up to and with each position."""
    over = tensor.axes_of((dim,))
    if not over:
        return tensor
    return Tensor(scanned(b, fold, tensor.value, over, hint=hint), tensor.dims)


def scanned(
    b: Builder, fold: Fold, value: Value, over: Dim, *, reverse: bool = False, hint: str = ""
) -> Value:
    """The scan of a value along axes, from the end where `reverse`."""
    return b.make(
        ("scan", fold, id(value), reverse, *map(id, over)),
        lambda: Value(
            "scan",
            value.axes,
            value.dtype,
            (value,),
            fold=fold,
            over=over,
            reverse=reverse,
            hint=hint,
        ),
    )
