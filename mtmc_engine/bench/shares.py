"""Device memory among the tasks that are walked at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mtmc_engine.core.task import Task

# A proof holds its inputs and results about so many times at once: five contestants with a pool
# and live tensors each, reference, candidate and judge.
_COPIES = 16
# Of 139 GiB on an H200; the rest is for CUDA's own.
CAPACITY_BYTES = 110 << 30


def device_bytes(task: Task) -> int:
    """About how much device memory the proofs of a task take."""
    values = [value.spec.nbytes for value in task.graph.inputs]
    largest = [sum(out.nbytes for out in node.out) for node in task.graph.nodes]
    return _COPIES * (sum(values) + max(largest, default=0))


class Shares:
    """Gives shares of a capacity in turn, each whole; one larger than all takes all."""

    def __init__(self, capacity: int) -> None:
        self._capacity = self._free = capacity
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def held(self, wanted: int) -> AsyncIterator[None]:
        """Waits until `wanted` is free, and holds it within."""
        share = min(wanted, self._capacity)
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= share)
            self._free -= share
        try:
            yield
        finally:
            async with self._changed:
                self._free += share
                self._changed.notify_all()
