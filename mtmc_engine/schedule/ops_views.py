"""Rules of views: they only rename the dimensions of a value."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.templates.axes import Axis, Dim, leaves, size_of
from mtmc_engine.schedule.templates.tensors import Builder, Tensor


@rule("unsqueeze.default")
def unsqueeze(b: Builder, self: Tensor, dim: int) -> Tensor:
    at = dim % (len(self.dims) + 1)
    return Tensor(self.value, (*self.dims[:at], (), *self.dims[at:]))


@rule("squeeze.dim", "squeeze.dims", "squeeze.default")
def squeeze(b: Builder, self: Tensor, dim: Sequence[int] | int | None = None) -> Tensor:
    wanted = range(len(self.dims)) if dim is None else [dim] if isinstance(dim, int) else dim
    ones = [d % len(self.dims) for d in wanted if not self.dims[d]]
    return b.without(self, ones) if ones else self


@rule("expand.default", "broadcast_to.default")
def expand(b: Builder, self: Tensor, size: Any, implicit: bool = False) -> Tensor:
    """Keeps size one where it was: pointwise consumers broadcast by themselves."""
    shape = b.spec.shape
    dims: list[Dim] = [() for _ in range(len(shape) - len(self.dims))] + list(self.dims)
    return Tensor(self.value, tuple(dims))


@rule("expand_as.default")
def expand_as(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    return expand(b, self, None)


@rule("broadcast_tensors.default")
def broadcast_tensors(b: Builder, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(tensors)


@rule("permute.default")
def permute(b: Builder, self: Tensor, dims: Sequence[int]) -> Tensor:
    return Tensor(self.value, tuple(self.dims[d] for d in dims))


@rule("transpose.int")
def transpose(b: Builder, self: Tensor, dim0: int, dim1: int) -> Tensor:
    dims = list(self.dims)
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return Tensor(self.value, tuple(dims))


@rule("t.default")
def t(b: Builder, self: Tensor) -> Tensor:
    return Tensor(self.value, tuple(reversed(self.dims)))


@rule(
    "view.default",
    "reshape.default",
    "_unsafe_view.default",
    "flatten.using_ints",
    "unflatten.int",
    "view_as.default",
)
def reshape(b: Builder, self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Groups the axes anew; a dimension that is split splits its axis."""
    texts = b.spec.dims or tuple(map(str, b.spec.shape))
    left = [axis for dim in self.dims for axis in leaves(dim)]
    dims: list[Dim] = []
    for size, text in zip(b.spec.shape, texts, strict=True):
        dim: list[Axis] = []
        while size_of(tuple(dim)) < size:
            require(bool(left), "a view that does not fit")
            axis = left.pop(0)
            if prod([a.size for a in dim]) * axis.size > size:
                part = size // prod([a.size for a in dim])
                require(part > 1 and axis.size % part == 0, "a view across dimensions")
                first, rest = Axis(part, text.isdigit() and not dim), Axis(axis.size // part)
                axis.parts = (first, rest)
                axis = first
                left.insert(0, rest)
            dim.append(axis)
        require(size_of(tuple(dim)) == size, "a view across dimensions")
        dims.append(tuple(dim))
    require(not left, "a view that does not fit")
    return Tensor(self.value, tuple(dims))
