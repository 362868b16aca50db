"""Strides of results: as the reference lays them in memory."""

from __future__ import annotations

from dataclasses import replace

from mtmc_engine.schedule.templates.axes import Dim, leaves
from mtmc_engine.schedule.templates.space import resolved, storage_axes
from mtmc_engine.schedule.templates.tensors import Tensor, Value
from mtmc_engine.schedule.templates.trace import Output, Trace


def stored(output: Output) -> Output:
    """The output with its dimensions in the order in which the reference stores them."""
    return replace(output, tensor=output.stored)


def permutation(tensor: Tensor, seen: Tensor) -> str:
    """The view that turns a stored tensor into what the caller sees: ".permute(1, 0)" or ""."""
    left = list(enumerate(_dims(tensor)))
    order = []
    for dim in _dims(seen):
        place = next(item for item in left if item[1] == dim)
        left.remove(place)
        order.append(place[0])
    if order == sorted(order):
        return ""
    return ".t()" if len(order) == 2 else f".permute({', '.join(map(str, order))})"


def lead_of(program: Trace) -> str:
    """The operand that all results follow at run time, whatever its layout is; "" for none.

    Where a group only computes element by element, and every operand has all of the elements, its
    kernel may walk through memory instead of dimensions. As in eager PyTorch the first operand
    decides.
    """
    if not program.elementwise or program.reductions or not program.outputs:
        return ""
    lead = _first(program.outputs[0].tensor.value)
    if lead not in program.loads:
        return ""
    own = {name: natural(program, name) for name, t in program.loads.items() if storage_axes(t)}
    alike = all(_dims(tensor) == _dims(own[lead]) for tensor in own.values())
    order = program.specs[lead].order or tuple(range(len(own[lead].dims)))
    as_stored = [_dims(own[lead])[dim] for dim in order]
    follow = all(
        _first(output.tensor.value) == lead and _dims(output.stored) == as_stored
        for output in program.outputs
    )
    return lead if alike and follow else ""


def natural(program: Trace, name: str) -> Tensor:
    """A load with its dimensions in their own order."""
    tensor, order = program.loads[name], program.orders.get(name, ())
    if not order:
        return tensor
    return Tensor(tensor.value, tuple(tensor.dims[order.index(dim)] for dim in range(len(order))))


def _dims(tensor: Tensor) -> list[Dim]:
    return [leaves(dim) for dim in tensor.dims]


def _first(value: Value) -> str:
    """Name of the first load among a value's operands that has all of its elements."""
    if value.kind == "load":
        return value.source
    axes = set(resolved(value.axes))
    full = [operand for operand in value.operands if set(resolved(operand.axes)) == axes]
    return _first(full[0]) if full and axes else ""
