"""Inputs whose contents are new for every timed call."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.draw import resized
from mtmc_engine.capture.load import Reference
from mtmc_engine.core.graph import TensorSpec

_MOST_BYTES = 1 << 31
_POOL_BYTES = 1 << 28
_MOST_POOL = 8
_MOST_SLOTS = 64


class Contents:
    """A pool of drawn inputs, and the tensors that programs are called with.

    Before each call the live tensors get an entry of the pool, chosen and scaled by a factor that
    has not been used before, both told by a secret: a cache keyed on pointer, shape, content or
    call count gains nothing. Every process that draws with the same seed and secret on the same
    device gets the same contents, bit by bit. Tensors of integers come from the pool as they are.
    """

    def __init__(
        self, reference: Reference, specs: tuple[TensorSpec, ...], device: str, seed: int
    ) -> None:
        self.nbytes = max(1, sum(spec.nbytes for spec in specs))
        count = max(2, min(_MOST_POOL, _POOL_BYTES // self.nbytes))
        first, self.tree = pytree.tree_flatten(resized(reference.inputs(seed), specs, seed))
        self._pool = [[_on(value, device) for value in first]]
        whole = any(isinstance(v, torch.Tensor) and not v.is_floating_point() for v in first)
        for number in range(1, count):
            if whole:  # indices and masks only mean something as the file draws them
                values = resized(reference.inputs(seed + number), specs, seed + number)
                self._pool.append([_on(value, device) for value in pytree.tree_leaves(values)])
            else:
                self._pool.append([_rolled(value, number, count) for value in self._pool[0]])
        self.live = [_copied(value) for value in self._pool[0]]

    def refresh(self, secret: str, live: list[Any] | None = None) -> None:
        """The contents that belong to `secret`, enqueued on the current stream."""
        source = random.Random(secret)
        fresh = source.choice(self._pool)
        factor = 1 + source.uniform(-0.05, 0.05)
        for target, value in zip(self.live if live is None else live, fresh, strict=True):
            if not isinstance(target, torch.Tensor):
                continue
            if target.is_floating_point():
                torch.mul(value, factor, out=target)
            else:
                target.copy_(value)

    def arguments(self, live: list[Any] | None = None) -> list[Any]:
        """The live tensors as the program is called with them."""
        found: list[Any] = pytree.tree_unflatten(self.live if live is None else live, self.tree)
        return found

    def slots(self, l2_bytes: int) -> list[list[Any]]:
        """Separate input tensors, together larger than the cache where memory allows."""
        wanted = -(-2 * l2_bytes // self.nbytes)
        count = max(8, min(_MOST_SLOTS, wanted, _MOST_BYTES // self.nbytes))
        return [[_copied(value) for value in self._pool[i % len(self._pool)]] for i in range(count)]


def _on(value: Any, device: str) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    there = value.to(device)
    dense = there.stride() == torch.empty_like(there, device="meta").stride()
    return there if dense else there.clone()


def _rolled(value: Any, number: int, count: int) -> Any:
    """The same rows from another one on."""
    if not isinstance(value, torch.Tensor) or not value.dim():
        return value
    rolled = torch.roll(value, max(1, value.shape[0] * number // count), 0)
    return torch.empty_like(value).copy_(rolled)


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value
