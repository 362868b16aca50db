"""The seam of Micro Coding: one program, one action, one candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import MtmcError, UsageError
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Class, Gate
from mtmc_engine.system.suggest import nearest


@dataclass(frozen=True)
class Candidate:
    """What a coder answered.

    notes:   sentences for the user: what was changed, what was left.
    coder:   name of the coder. seconds: wall-clock time it took.
    """

    program: Program
    notes: tuple[str, ...]
    coder: str
    seconds: float


@dataclass(frozen=True)
class Feedback:
    """What a failed gate said about the candidate before this one.

    repair: "fix_compile", "fix_memory" or "fix_math", chosen by the gate.
    source: the candidate that failed. log: tail of the compiler's or the candidate's output.
    """

    repair: str
    gate: Gate
    verdict: Class
    sentence: str
    source: str
    log: str = ""


class CannotImplement(MtmcError):
    """A coder has no candidate for an action. `str(error)` says why; the program stays."""


class Coder(Protocol):
    """Turns a program and an action into a candidate program."""

    name: str

    async def implement(
        self, task: Task, program: Program, action: Action, feedback: Feedback | None = None
    ) -> Candidate:
        """A candidate with only that change. Raises CannotImplement where there is none."""
        ...

    async def close(self) -> None:
        """Ends what the coder started."""
        ...


KNOWN_CODERS = ("builtin",)


def make_coder(spec: str) -> Coder:
    """The coder that a specification names. Raises UsageError for any but "builtin"."""
    from mtmc_engine.coder.builtin import BuiltinCoder

    if spec == BuiltinCoder.name:
        return BuiltinCoder()
    meant = nearest(spec.partition(":")[0], KNOWN_CODERS)
    raise UsageError(
        f"There is no coder {spec!r}: use {meant!r} (coders here: {', '.join(KNOWN_CODERS)})."
    )
