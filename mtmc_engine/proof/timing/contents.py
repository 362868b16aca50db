"""Inputs whose contents are new for every timed call."""

from __future__ import annotations

import random
from typing import Any

import torch

from mtmc_engine.capture.draw import resized
from mtmc_engine.capture.load import Reference
from mtmc_engine.core.graph import TensorSpec

_MOST_BYTES = 1 << 31
_POOL_BYTES = 1 << 28
_MOST_POOL = 8
_MOST_SLOTS = 64


class Contents:
    """A pool of drawn inputs, and the tensors that programs are called with.

    Before each call the live tensors get an entry of the pool, in shuffled order, scaled by a
    factor that has not been used before: a cache keyed on pointer, shape, content or call count
    gains nothing.
    """

    def __init__(
        self, reference: Reference, specs: tuple[TensorSpec, ...], device: str, seed: int
    ) -> None:
        self._random = random.Random(seed)
        self.nbytes = max(1, sum(spec.nbytes for spec in specs))
        count = max(2, min(_MOST_POOL, _POOL_BYTES // self.nbytes))
        pattern = reference.inputs(seed)
        drawn = [resized(pattern, specs, seed)]
        drawn += [resized(reference.inputs(seed + i), specs, seed + i) for i in range(1, count)]
        self._pool = [[_on(value, device) for value in values] for values in drawn]
        self.live = [_copied(value) for value in self._pool[0]]
        self._order: list[int] = []

    def refresh(self, live: list[Any] | None = None) -> None:
        """New contents in the live tensors, enqueued on the current stream."""
        if not self._order:
            self._order = list(range(len(self._pool)))
            self._random.shuffle(self._order)
        fresh = self._pool[self._order.pop()]
        factor = 1 + self._random.uniform(-0.05, 0.05)
        for target, source in zip(self.live if live is None else live, fresh, strict=True):
            if not isinstance(target, torch.Tensor):
                continue
            if target.is_floating_point():
                torch.mul(source, factor, out=target)
            else:
                target.copy_(source)

    def slots(self, l2_bytes: int) -> list[list[Any]]:
        """Separate input tensors, together larger than the cache where memory allows."""
        wanted = -(-2 * l2_bytes // self.nbytes)
        count = max(8, min(_MOST_SLOTS, wanted, _MOST_BYTES // self.nbytes))
        return [[_copied(value) for value in self._pool[i % len(self._pool)]] for i in range(count)]


def _on(value: Any, device: str) -> Any:
    return value.to(device).contiguous() if isinstance(value, torch.Tensor) else value


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value
