"""Named axes of a group's tensors: dimensions that run together are one axis.

A dimension of a value is a tuple of axes: empty for size one (broadcast), several where a view
has merged dimensions. Pointwise operators unify the axes of their operands; a view that splits
a dimension splits the axis for every value that has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mtmc_engine.schedule.ops import Unsupported


@dataclass(eq=False)
class Axis:
    """One axis of the iteration space.

    literal: its size is a number that the reference states.
    formula: its size in terms of the dimensions `of`, such as "{0} + {1}", "" where a tensor of
             the group shows it.
    window:  a loop inside of one element, such as the window of a pool.
    """

    size: int
    literal: bool = False
    same_as: Axis | None = None
    parts: tuple[Axis, ...] = ()
    formula: str = ""
    of: tuple[Dim, ...] = ()
    window: bool = False


Dim = tuple[Axis, ...]


def leaves(dim: Dim) -> Dim:
    """The dimension in terms of axes that are neither replaced nor split."""
    found: list[Axis] = []
    for axis in dim:
        if axis.same_as is not None:
            found.extend(leaves((axis.same_as,)))
        elif axis.parts:
            found.extend(leaves(axis.parts))
        else:
            found.append(axis)
    return tuple(found)


def size_of(dim: Dim) -> int:
    """Number of elements along the dimension."""
    return prod(axis.size for axis in leaves(dim))


def unify(one: Dim, other: Dim) -> None:
    """Makes two dimensions run together. Raises Unsupported where sizes do not fit."""
    left, right = list(leaves(one)), list(leaves(other))
    while left and right:
        a, b = left.pop(), right.pop()
        if a is b:
            continue
        if a.size == b.size:
            a.literal = a.literal or b.literal
            if not a.formula:
                a.formula, a.of = b.formula, b.of
            b.same_as = a
        elif a.size > b.size and a.size % b.size == 0:
            left.append(_split(a, b))
        elif b.size > a.size and b.size % a.size == 0:
            right.append(_split(b, a))
        else:
            raise Unsupported("dimensions of different sizes run together")
    if left or right:
        raise Unsupported("dimensions of different sizes run together")


def _split(axis: Axis, last: Axis) -> Axis:
    """Splits `axis` into a first part, which is returned, and `last`."""
    first = Axis(axis.size // last.size)
    axis.parts = (first, last)
    return first
