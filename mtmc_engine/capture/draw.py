"""Call arguments of other shapes, drawn from the distribution of the originals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.order import memory_order
from mtmc_engine.core.graph import TensorSpec


def resized(inputs: Sequence[Any], specs: Sequence[TensorSpec], seed: int) -> list[Any]:
    """The call's arguments with each tensor in the shape of its spec.

    A tensor that has that shape already is kept; any other is drawn from the elements of the
    original, so that dtype and value range stay. Integers that look like indices into a dimension
    stay inside it where it shrinks. specs: one per tensor, nested ones included, in order.
    """
    leaves, folded = pytree.tree_flatten(list(inputs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    sizes: list[tuple[int, int]] = []
    for place, spec in zip(places, specs, strict=True):
        sizes += zip(leaves[place].shape, spec.shape, strict=True)
    generator = torch.Generator().manual_seed(seed)
    for place, spec in zip(places, specs, strict=True):
        tensor = leaves[place]
        if tuple(tensor.shape) != spec.shape:
            leaves[place] = _inside(tensor, drawn(tensor, spec.shape, generator), sizes)
    return list(pytree.tree_unflatten(leaves, folded))


def drawn(tensor: Any, shape: tuple[int, ...], generator: Any) -> Any:
    """A tensor of `shape` whose elements are taken from `tensor` at random (zeros if it is empty).

    Its dimensions lie in memory as those of `tensor` do.

    generator: a torch.Generator on the CPU.
    """
    if tensor.numel() == 0:
        return tensor.new_zeros(shape)
    picked = torch.randint(tensor.numel(), shape, generator=generator).to(tensor.device)
    values = tensor.detach().reshape(-1)[picked]
    order = memory_order(tensor.shape, tensor.stride())
    if not order:
        return values
    laid = torch.empty_permuted(shape, order, dtype=tensor.dtype, device=tensor.device)
    return laid.copy_(values)


def _inside(tensor: Any, new: Any, sizes: list[tuple[int, int]]) -> Any:
    """Keeps integers below the size of the dimension that they seem to index."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype == torch.bool:
        return new
    if tensor.numel() == 0:
        return new
    largest = int(tensor.max())
    above = [old for old, _ in sizes if largest < old <= 2 * largest + 2]
    if not above:
        return new
    bound = min(resized_to for old, resized_to in sizes if old == min(above))
    return torch.where(new < 0, new, new % max(bound, 1)) if bound < min(above) else new
