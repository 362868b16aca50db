"""What a bench was asked to do."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from msgspec import Meta, Struct

from mtmc_engine.core.options import MOST_JOBS, Seed

Protocol = Literal["strict", "plain"]
Precision = Literal["match", "tf32"]
_Seconds = Annotated[float, Meta(gt=0)]
_Count = Annotated[int, Meta(ge=1)]


class BenchOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of `python -m mtmc_engine bench`.

    paths:    folders of tasks, or files.
    budget_s: seconds after which the bench stops and can be resumed; None: until all is done.
    jobs:     children that are busy at once; None: one for each core but two, since a timing that
              has to wait for a core cannot be believed.
    json:     file of results, one line a task; "" for none.
    resume:   tasks that have a line there are not run again.
    protocol: "strict" counts a task as proven only where the hidden inputs were among its cases.
    precision: of every contestant alike, whatever the file's TASK says.
    steps:    most attempts of a task.
    task_s:   seconds after which a walk takes its best so far; None: 120 with a GPU, else 600.
    """

    paths: tuple[str, ...]
    budget_s: _Seconds | None = None
    jobs: Annotated[int, Meta(ge=1, le=MOST_JOBS)] | None = None
    json: str = ""
    resume: bool = False
    protocol: Protocol = "strict"
    precision: Precision = "match"
    target: str = ""
    seed: Seed = 0
    steps: _Count = 8
    task_s: _Seconds | None = None

    @property
    def children(self) -> int:
        """Children that are busy at once."""
        return self.jobs or max(1, len(os.sched_getaffinity(0)) - 2)

    def most_seconds(self, measured: bool) -> float:
        """Seconds that a walk may take."""
        return self.task_s or (120.0 if measured else 600.0)

    def walkers(self, measured: bool) -> int:
        """Tasks that are walked at once.

        A GPU is shared by few, so that one can compute while another one samples or compiles;
        without one every walk needs about two cores.
        """
        return max(1, min(3, self.children // 4) if measured else self.children // 2)

    def openers(self, measured: bool) -> int:
        """Tasks that are opened and compiled ahead at once."""
        return max(1, (self.children - self.walkers(measured) + 1) // 3)

    def compilers(self, measured: bool) -> int:
        """Candidates that are compiled ahead at once."""
        return max(1, self.children - self.walkers(measured) - self.openers(measured))
