"""What a user may ask for between and beside decisions: pause, branch, export, hints."""

from __future__ import annotations

from pathlib import Path

from mtmc_engine.core.errors import MtmcError, UsageError
from mtmc_engine.core.events import (
    AnyCommand,
    ApproveAll,
    Branch,
    Export,
    Hint,
    Pause,
    Replay,
    RunPaused,
    Stop,
)
from mtmc_engine.plan.tree import TreeNode
from mtmc_engine.session.run import Run, best_events, node_event
from mtmc_engine.session.summary import step_summaries


class Stopped(Exception):
    """The run ends in the middle of a step, which stays undecided.

    by: who ended it, a word of SessionFinished.
    """

    def __init__(self, reason: str = "", by: str = "user") -> None:
        super().__init__(reason)
        self.by = by


class ReplayAsked(Exception):
    """The approved plan is to be applied to the user's changed file."""


def note_arrival(run: Run, command: AnyCommand) -> None:
    """What takes effect at once, whatever runs."""
    match command:
        case Pause() if command.paused != run.paused:
            run.paused = command.paused
            run.outlet.emit(RunPaused(command.paused))
        case Hint() if command.text.strip():
            run.hints.append(f"{command.level}: {command.text.strip()}")
            run.proposal = None
            assert run.outlet.journal is not None
            run.outlet.journal.set_fact("hints", run.hints)
            run.outlet.notice(f"The planner will read your hint: {command.text.strip()}")
        case ApproveAll():
            run.follows_policy = True
        case _:
            pass


async def serve_waiting(run: Run) -> None:
    """Serve what was asked for meanwhile, and wait while the run is paused.

    Raises Stopped and ReplayAsked.
    """
    while command := run.inbox.next_request():
        serve(run, command)
    while run.paused and not run.inbox.closed:
        run.outlet.phase("wait", "paused")
        serve(run, await run.inbox.next())


def serve(run: Run, command: AnyCommand) -> None:
    """Do what one command asks; decisions and what took effect on arrival are passed over."""
    match command:
        case Stop():
            raise Stopped(command.reason)
        case Replay():
            raise ReplayAsked
        case Branch():
            branch(run, command.node)
        case Export():
            export(run, command.folder)
        case _:
            pass


def branch(run: Run, node: str) -> None:
    """Continue from another proven program of the tree."""
    target = branch_target(run, node)
    if target is None:
        return
    if target.state == "rejected":
        run.outlet.emit(node_event(run, run.tree.set_state(node, "open")), *best_events(run))
    run.current, run.proposal = node, None
    run.outlet.notice(f"The plan continues from {node}.")


def branch_target(run: Run, node: str) -> TreeNode | None:
    """The node, if a plan can continue from it; the user is told where it cannot."""
    if node not in run.tree:
        run.outlet.warn(f"There is no node {node} to continue from.")
        return None
    target = run.tree[node]
    if target.parent is not None and not (target.verdict and target.verdict.proven):
        run.outlet.warn(f"{node} is not proven: continue from a proven program.")
        return None
    return target


def export(run: Run, folder: str) -> None:
    """Write the best proven program; a failure is told and does not end the run.

    folder: "" is the folder of the user's file.
    """
    try:
        export_best(run, folder)
    except MtmcError as error:
        run.outlet.warn(str(error))


def export_best(run: Run, folder: str) -> None:
    """Write the best proven program. Raises UsageError where the folder cannot be written."""
    run.outlet.phase("export", folder)
    best = run.tree.best()
    if best.parent is None and best.verdict is not None and not best.verdict.proven:
        raise UsageError(
            "Nothing is exported: the original is wrong and no step has been proven in its place."
        )
    exported = run.exporter.write(
        task=run.task,
        path=run.tree.path(best.id),
        steps=step_summaries(run),
        folder=export_folder(folder, run.task.file),
    )
    run.exported = exported.folder
    run.outlet.emit(exported)


def export_folder(folder: str, file: str) -> Path:
    """Where an export goes: beside the user's file where nothing is said."""
    return Path(folder).expanduser().absolute() if folder else Path(file).parent
