"""What TASK declares of a call's tensors, held against the call: shapes and varying dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.core.task import Policy
from mtmc_engine.system.suggest import nearest

Shapes = tuple[tuple[int, ...], ...]


def input_sets(
    policy: Policy, made: Sequence[TensorSpec], file_name: str
) -> tuple[tuple[TensorSpec, ...], ...]:
    """The declared input sets, or the one that the file makes. Raises UsageError on a mismatch."""
    if not policy.shapes:
        return (tuple(made),)
    for shapes in policy.shapes:
        if len(shapes) != len(made):
            raise UsageError(
                f"TASK shapes in {file_name} has a set of {len(shapes)} shapes, "
                f"but the call has {len(made)} tensors."
            )
        for shape, spec in zip(shapes, made, strict=True):
            if len(shape) != len(spec.shape):
                raise UsageError(
                    f"TASK shapes in {file_name} has a shape {label_of([shape])} for a tensor "
                    f"of {len(spec.shape)} dimensions."
                )
    return tuple(
        tuple(
            TensorSpec(tuple(shape), spec.dtype, tuple(str(size) for size in shape), spec.order)
            for shape, spec in zip(shapes, made, strict=True)
        )
        for shapes in policy.shapes
    )


def label_of(shapes: Sequence[Sequence[int]]) -> str:
    """ "4096x8192", several tensors joined by ", "; "scalar" for a tensor without dimensions."""
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)


def allowed_dims(
    policy: Policy, targets: Sequence[str], specs: Sequence[TensorSpec], file_name: str
) -> frozenset[tuple[int, int]] | None:
    """(tensor position, dimension) that TASK vary lets vary; None where it says nothing.

    An entry is "x" for all dimensions of the argument x, or "x.0" for one of them; dimensions in
    which the declared shapes differ vary in any case. Raises
    UsageError for an unknown argument, naming the nearest, and for a dimension that is not there.
    """
    if not policy.vary:
        return None
    allowed = _differing(policy)
    for entry in policy.vary:
        name, dot, number = entry.rpartition(".")
        name, number = (name, number) if dot else (entry, "")
        if name not in targets:
            raise UsageError(
                f"TASK vary in {file_name} names {name!r}, which is no tensor of the call; "
                f"did you mean {nearest(name, targets)!r}?"
            )
        position = targets.index(name)
        rank = len(specs[position].shape)
        if number and not (number.isdigit() and int(number) < rank):
            raise UsageError(
                f"TASK vary in {file_name} names {entry!r}, but {name} has {rank} dimensions."
            )
        allowed |= {(position, d) for d in ([int(number)] if number else range(rank))}
    return frozenset(allowed)


def _differing(policy: Policy) -> set[tuple[int, int]]:
    first = policy.shapes[:1]
    return {
        (position, d)
        for shapes in policy.shapes
        for position, (shape, one) in enumerate(zip(shapes, first[0], strict=True))
        for d, (size, other) in enumerate(zip(shape, one, strict=True))
        if size != other
    }
