"""Smaller integers in place of the large ones, with their relations kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """How far integers shrink.

    kept:  integers up to this stay: heads, kernel sizes, strides, group counts.
    least: no larger integer becomes smaller than this.
    products: where an integer is the product of two others, so is its replacement.
    """

    kept: int
    least: int
    products: bool = False


def smaller(
    values: Iterable[int], scale: Scale, forced: Mapping[int, int] | None = None
) -> dict[int, int]:
    """Each value with its replacement.

    Equal values stay equal, order is kept, what divided still divides, powers of two stay powers
    of two, and multiples of 8 (4, 2) stay so. forced: replacements that are settled already.
    """
    settled = dict(forced or {})
    small: dict[int, int] = {}
    for value in sorted(set(values) - settled.keys()):
        small[value] = value if value <= scale.kept else _replacement(value, small, scale)
    return small | settled


def head_sizes(values: Iterable[int], dims: Iterable[int]) -> dict[int, int]:
    """Replacements that keep the size of an attention head: two heads instead of many.

    A width that another value (the number of heads) divides into one of the graph's `dims` is
    taken for one: a head's size sets the scale of its scores, which is no size itself.
    """
    present, known = set(dims), sorted(set(values))
    for width in reversed(known):
        for heads in known:
            size = width // heads if heads else 0
            if 2 < heads <= 128 and width % heads == 0 and size in present and 16 <= size <= 256:
                return {heads: 2, width: 2 * size}
    return {}


def _replacement(value: int, small: dict[int, int], scale: Scale) -> int:
    if scale.products:
        for one, small_one in small.items():
            other = value // one
            if one > 1 and value % one == 0 and other in small:
                return small_one * small[other]
    least = max([scale.least, *(s + 1 for old, s in small.items() if old > scale.kept)])
    step = next(n for n in (8, 4, 2, 1) if value % n == 0 and n <= scale.least)
    divisors = [s for old, s in small.items() if old > 1 and value % old == 0]
    is_power = value & (value - 1) == 0
    for candidate in range(least, value):
        if is_power and candidate & (candidate - 1):
            continue
        odd = value % 2 == candidate % 2
        if candidate % step == 0 and odd and all(candidate % d == 0 for d in divisors):
            return candidate
    return value
