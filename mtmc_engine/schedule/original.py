"""The schedule that a session starts from."""

from __future__ import annotations

from mtmc_engine.core.program import Program, Schedule
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render


def original_schedule(task: Task) -> Schedule:
    """Library calls for every region; of a file with Triton kernels, these by hand."""
    if not task.program:
        return root(task.graph)
    from mtmc_engine.schedule.source.regions import source_schedule

    return source_schedule(task.program)


def rewritten_schedule(source: str, before: Schedule) -> Schedule:
    """The schedule of a program that the user wrote in Triton after a change of its text.

    Regions of `before` that are still there keep their names.
    """
    from mtmc_engine.schedule.source.regions import source_schedule

    return source_schedule(source, before.regions)


def original_program(task: Task) -> Program:
    """The program that every session starts from: the library, call by call, or the user's own."""
    schedule = original_schedule(task)
    return Program(task.program or render(task, schedule), schedule)
