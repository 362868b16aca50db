"""The seam of Micro Coding: one program, one action, one candidate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import MtmcError
from mtmc_engine.core.events import AnyEvent
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Class, Gate


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
    facts:  the shortest useful evidence, one sentence or line each.
    coder:  name of the coder whose candidate failed, "" where unknown.
    """

    repair: str
    gate: Gate
    verdict: Class
    sentence: str
    source: str
    log: str = ""
    facts: tuple[str, ...] = ()
    coder: str = ""


def _silent(event: AnyEvent) -> None:
    """Nobody listens."""


@dataclass(frozen=True)
class CoderAsk:
    """What a coder is told besides the program and the action.

    feedback: of the failed candidate that is to be repaired.
    hints:    what the user typed, oldest first. evidence: measured or estimated facts of the
              program, one sentence each. verdicts: of the last steps, one sentence each.
    step, attempt, sample: for the events that the coder tells.
    tell:     takes the events of prompts and replies as they happen.
    send:     awaited between a prompt's event and the call, where the user reads prompts first.
    """

    feedback: Feedback | None = None
    hints: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    step: int = 0
    attempt: int = 1
    sample: int = 0
    tell: Callable[[AnyEvent], None] = _silent
    send: Callable[[], Awaitable[None]] | None = None


class CannotImplement(MtmcError):
    """A coder has no candidate for an action. `str(error)` says why; the program stays."""


class CoderUnavailable(CannotImplement):
    """The coder cannot be reached or may not be asked any more: asking again is useless."""


class Coder(Protocol):
    """Turns a program and an action into a candidate program.

    address: where its model is, as it is shown; "" for none. Never holds a key.
    learns:  whether the feedback of a failed gate may help it.
    """

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def learns(self) -> bool: ...

    async def implement(
        self, task: Task, program: Program, action: Action, ask: CoderAsk
    ) -> Candidate:
        """A candidate with only that change.

        Raises CannotImplement where there is none, CoderUnavailable where it cannot be asked.
        """
        ...

    async def close(self) -> None:
        """Ends what the coder started."""
        ...
