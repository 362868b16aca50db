"""Timers that replay recorded samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mtmc_engine.core.errors import UsageError
from mtmc_engine.proof.gates.parse import SyntaxProblem, outline
from mtmc_engine.proof.timing.timer import COMPILED, COPY, EAGER, Contest, Entrant, Sampled, Timed

# Begins the answer of a timer that has no samples of the candidate.
UNRECORDED = "there is no recording of"


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


class RecordedProgram(Struct, frozen=True, forbid_unknown_fields=True):
    """Samples of the program that has these Triton kernels, by name; none: the library alone.

    samples_us: rounds of device time per call, microseconds.
    """

    kernels: tuple[str, ...]
    samples_us: list[list[float]]


class Recording(Struct, frozen=True, forbid_unknown_fields=True):
    """All programs of one session. method: how they were timed, in words. device: as in Timed."""

    method: str
    eager: list[list[float]]
    programs: tuple[RecordedProgram, ...]
    compiled: list[list[float]] = []
    device: dict[str, Any] = {}


class SessionTimer:
    """Times the programs of a session by a recording, which knows them by their kernels."""

    def __init__(self, recording: Recording, origin: str) -> None:
        self._recording = recording
        self._origin = origin

    @classmethod
    def of(cls, file: Path) -> SessionTimer:
        """Reads a recording. Raises UsageError where it is none."""
        try:
            return cls(msgspec.json.decode(file.read_bytes(), type=Recording), file.name)
        except OSError as error:
            raise UsageError(f"The timings {file} cannot be read: {error.strerror}.") from error
        except msgspec.MsgspecError as error:
            raise UsageError(f"The timings {file} are no recording: {error}.") from error

    async def time(self, contest: Contest, tell: Callable[[int, int, str], None]) -> Timed:
        """Samples of all entrants; `failed` says so where the candidate was not recorded."""
        samples, missing = {}, {}
        for number, entrant in enumerate(contest.entrants):
            tell(number, len(contest.entrants), f"{entrant.name}, replayed")
            rounds = self._rounds(entrant)
            if rounds:
                samples[entrant.name] = rounds
            elif entrant.code is not None and entrant.name != COPY:
                kernels = ", ".join(_kernels(entrant)) or "no kernels"
                return Timed((), failed=f"{UNRECORDED} a program with {kernels}")
            else:
                missing[entrant.name] = "it was not recorded"
        method = f"replayed from {self._origin}: {self._recording.method}"
        sampled = Sampled(samples, call_us={}, enqueue_us={}, method=method)
        device = self._recording.device
        return Timed((sampled,) * len(contest.sets), missing, device=device, kind="replayed")

    def _rounds(self, entrant: Entrant) -> list[list[float]]:
        if entrant.kind == EAGER:
            rounds = self._recording.eager
        elif entrant.kind == COMPILED:
            rounds = self._recording.compiled
        else:
            kernels = _kernels(entrant)
            matching = (p for p in self._recording.programs if sorted(p.kernels) == kernels)
            rounds = next((p.samples_us for p in matching), [])
        return rounds[::-1] if entrant.name == COPY else rounds


def _kernels(entrant: Entrant) -> Sequence[str]:
    assert entrant.code is not None
    found = outline(Path(entrant.code.path).read_text(encoding="utf-8"))
    return [] if isinstance(found, SyntaxProblem) else sorted(found.kernels)
