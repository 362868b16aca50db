"""Strides of pointwise results: eager PyTorch keeps the order of the first operand's dimensions."""

from __future__ import annotations

from dataclasses import replace

from mtmc_engine.schedule.templates.axes import Dim, leaves
from mtmc_engine.schedule.templates.space import resolved
from mtmc_engine.schedule.templates.tensors import Tensor, Value
from mtmc_engine.schedule.templates.trace import Output


def stored(output: Output) -> Output:
    """The output with its dimensions in the order in which eager PyTorch stores them."""
    dims = [leaves(dim) for dim in output.tensor.dims]
    order = _order(output.tensor.value)
    if not all(dims) or any(axis not in order for dim in dims for axis in dim):
        return output
    ranked = sorted(output.tensor.dims, key=lambda dim: order.index(leaves(dim)[0]))
    return replace(output, tensor=Tensor(output.tensor.value, tuple(ranked)))


def permutation(tensor: Tensor, seen: Tensor) -> str:
    """The view that turns a stored tensor into what the caller sees: ".permute(1, 0)" or ""."""
    dims = [leaves(dim) for dim in tensor.dims]
    order = [dims.index(leaves(dim)) for dim in seen.dims] if all(dims) else []
    if order == sorted(order):
        return ""
    return ".t()" if len(order) == 2 else f".permute({', '.join(map(str, order))})"


def _order(value: Value) -> Dim:
    """Axes in memory order: those of the first operand that has all of them."""
    axes = resolved(value.axes)
    if value.kind != "compute":
        return axes
    for operand in value.operands:
        if set(resolved(operand.axes)) == set(axes):
            return _order(operand)
    return axes
