"""In which order a tensor's dimensions lie in memory."""

from __future__ import annotations

from collections.abc import Sequence


def memory_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Dimensions from the widest stride to the narrowest; () where that is their own order.

    Dimensions of size one lie anywhere; where elements share memory there is no order.
    """
    wide = [dim for dim, size in enumerate(shape) if size > 1]
    if 0 in shape or any(strides[dim] == 0 for dim in wide):
        return ()
    ranked = iter(sorted(wide, key=lambda dim: -strides[dim]))
    order = tuple(next(ranked) if size > 1 else dim for dim, size in enumerate(shape))
    return () if order == tuple(range(len(shape))) else order
