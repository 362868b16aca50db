"""The built-in coder: applies an action's change to the schedule and renders it. Offline."""

from __future__ import annotations

import time

from mtmc_engine.coder.seam import Candidate, CannotImplement, CoderAsk
from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import ByHand, Program, Schedule
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.legal import apply_action
from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.render import render


class BuiltinCoder:
    """Renders schedules; the same program and action always give the same source."""

    name = "builtin"
    address = ""
    learns = False

    async def implement(
        self, task: Task, program: Program, action: Action, ask: CoderAsk
    ) -> Candidate:
        """The program with the action's change.

        Raises CannotImplement where the action is not legal, where it would undo code written
        by hand, and as an answer to any failed gate: there is no second way of rendering.
        """
        started = time.perf_counter()
        if ask.feedback is not None:
            raise CannotImplement(
                f"The built-in coder has one way to write {action.phrase!r}, and it failed: "
                f"{ask.feedback.sentence}"
            )
        try:
            schedule = apply_action(task, program.schedule, action)
            changed = Program(render(task, schedule), schedule)
        except (UsageError, Unsupported) as error:
            raise CannotImplement(str(error)) from error
        notes = _notes(program.schedule, schedule)
        return Candidate(changed, notes, self.name, time.perf_counter() - started)

    async def close(self) -> None:
        """Nothing to end."""


def _notes(before: Schedule, after: Schedule) -> tuple[str, ...]:
    if after.regions:
        return ()
    by_hand = [g.region for g in after.groups if isinstance(g.form, ByHand)]
    kernels = len([g for g in after.groups if g not in before.groups and g.region])
    notes = [f"{kernels} group{'s' if kernels != 1 else ''} rendered anew."] if kernels else []
    if by_hand:
        notes.append(f"Code written by hand is kept: {', '.join(by_hand)}.")
    return tuple(notes)
