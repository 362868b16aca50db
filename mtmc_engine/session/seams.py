"""What the session is given from the room above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mtmc_engine.core.events import Exported, StepSummary
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Verdict


class WriteExport(Protocol):
    """Writes the answer of a session as files."""

    def __call__(
        self,
        *,
        task: Task,
        program: Program,
        plan: Sequence[str],
        steps: Sequence[StepSummary],
        verdict: Verdict | None,
        measurement: Measurement | None,
        folder: Path,
    ) -> Exported:
        """plan: phrases of the steps that lead to `program`; none where it is the original.

        Raises UsageError where the folder cannot be written.
        """


@dataclass(frozen=True)
class Exporter:
    """The export room. check: raises UsageError where a folder cannot be written."""

    check: Callable[[Path], None]
    write: WriteExport
