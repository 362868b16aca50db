"""What is left of a proof's time: its stages share bounds, each of which one child keeps."""

from __future__ import annotations

import time
from collections.abc import Callable

from mtmc_engine.core.verdict import Gate
from mtmc_engine.system.config import StageLimits

# Gates that run in the same child, or in children one after the other, by their first one.
_FIRST = {Gate.IMPORT: Gate.IMPORT, Gate.COMPILE: Gate.IMPORT} | {
    Gate.LAUNCH: Gate.LAUNCH,
    Gate.VALUES: Gate.LAUNCH,
    Gate.TIMING: Gate.TIMING,
}


class Stage:
    """The stage that a proof is in, and when it will be given up.

    clock: seconds.
    """

    def __init__(self, limits: StageLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = {
            Gate.IMPORT: limits.compile_s,
            Gate.LAUNCH: limits.reference_s + limits.values_s,
            Gate.TIMING: limits.timing_s,
        }
        self._clock = clock
        self._stage: Gate | None = None
        self._until = 0.0

    def enter(self, gate: Gate) -> None:
        """Note the gate that runs now; one of the stage that runs already changes nothing."""
        stage = _FIRST.get(gate)
        if stage is not None and stage is not self._stage:
            self._until = self._clock() + self._seconds[stage]
        self._stage = stage

    @property
    def left_s(self) -> float | None:
        """Seconds until it is given up; None for a gate that needs no child."""
        if self._stage is None:
            return None
        return round(max(0.0, self._until - self._clock()), 1)


def phase_of(gate: Gate) -> str:
    """The phase that a gate belongs to."""
    return "time" if gate is Gate.TIMING else "prove"
