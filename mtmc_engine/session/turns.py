"""Several proofs side by side, the cheap gates of all before the costly ones of any."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mtmc_engine.core.verdict import Gate

_OVER = len(Gate)


class Turns:
    """Lets one proof work at a time: the one that stands at the earliest gate, of these the first.

    So all candidates are compiled before the values of any are compared, and no two are timed
    together.
    """

    def __init__(self, count: int) -> None:
        self._gates = [0] * count
        self._moved = asyncio.Condition()

    def pause(self, number: int) -> Callable[[Gate], Awaitable[None]]:
        """What proof `number` awaits before a gate."""

        async def wait(gate: Gate) -> None:
            await self._at(number, list(Gate).index(gate))

        return wait

    async def over(self, number: int) -> None:
        """Proof `number` has ended."""
        async with self._moved:
            self._gates[number] = _OVER
            self._moved.notify_all()

    async def _at(self, number: int, gate: int) -> None:
        async with self._moved:
            self._gates[number] = gate
            self._moved.notify_all()
            await self._moved.wait_for(lambda: self._first() == number)

    def _first(self) -> int:
        return self._gates.index(min(self._gates))
