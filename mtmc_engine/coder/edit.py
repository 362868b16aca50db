"""What a user's edit of the source means for the schedule: which groups are now by hand."""

from __future__ import annotations

from msgspec.structs import replace

from mtmc_engine.coder.top_level import TopLevel, all_by_hand
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import ByHand, Group, Program
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.original import rewritten_schedule
from mtmc_engine.schedule.render.module import entry_name


def edited(task: Task, program: Program, source: str) -> Program:
    """The program after the user saved `source`, which it holds exactly.

    Groups whose kernel or launcher changed become by hand, with what these functions need of
    imports and helpers; the others stay as they are. Where the call itself changed (forward,
    or the function of the reference's name), every group is by hand and its source is the whole
    module. A program that the user wrote in Triton is one text: its regions are found anew.
    Raises UsageError for a syntax error, with its line.
    """
    before, after = TopLevel.of(program.source), _saved(source)
    if task.program:
        return Program(source, rewritten_schedule(source, program.schedule))
    entry = entry_name(task)
    changed = before.changed(after) & {entry, *after.needs([entry]), *after.loose, *before.loose}
    if not changed:
        return Program(source, program.schedule)
    launchers = before.launchers(program.schedule, entry)
    touched = {region for region, name in launchers.items() if after.needs([name]) & changed}
    reached = after.needs(launchers[region] for region in touched)
    direct = after.needs([entry], without=frozenset(launchers.values()))
    if direct & changed or not changed <= reached:
        return Program(source, all_by_hand(program.schedule, source))
    kept_imports = before.imports - changed
    groups = [
        Group(g.region, g.nodes, ByHand(after.group_text(launchers[g.region], kept_imports)))
        if g.region in touched
        else g
        for g in program.schedule.groups
    ]
    return Program(source, replace(program.schedule, groups=tuple(groups)))


def _saved(source: str) -> TopLevel:
    try:
        return TopLevel.of(source)
    except SyntaxError as error:
        raise UsageError(
            f"The edited program has a syntax error in line {error.lineno}: {error.msg}; "
            "correct it and save again."
        ) from error
