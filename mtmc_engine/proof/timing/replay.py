"""A timer that replays recorded samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from mtmc_engine.proof.timing.timer import Contest, Timed


class ReplayTimer:
    """Gives what was recorded, in the recorded order; the statistics are those of a real run."""

    def __init__(self, recording: Timed) -> None:
        self.recording = recording

    @classmethod
    def of(cls, file: Path) -> ReplayTimer:
        """Reads a recording that `record` wrote."""
        return cls(msgspec.json.decode(file.read_bytes(), type=Timed))

    async def time(self, contest: Contest, tell: Callable[[int, int, str], None]) -> Timed:
        return self.recording


def record(timed: Timed, file: Path) -> None:
    """Keeps the samples of a run."""
    file.write_bytes(msgspec.json.encode(timed))
