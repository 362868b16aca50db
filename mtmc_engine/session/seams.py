"""What the session is given from the room above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mtmc_engine.core.events import Exported, StepSummary
from mtmc_engine.core.task import Task
from mtmc_engine.plan.tree import TreeNode


class WriteExport(Protocol):
    """Writes the answer of a session as files."""

    def __call__(
        self,
        *,
        task: Task,
        path: Sequence[TreeNode],
        steps: Sequence[StepSummary],
        folder: Path,
    ) -> Exported:
        """path: the programs from the original to the answer; it alone where no step helped.

        Raises UsageError where the folder cannot be written.
        """


@dataclass(frozen=True)
class Exporter:
    """The export room. check: raises UsageError where a folder cannot be written."""

    check: Callable[[Path], None]
    write: WriteExport
