"""The original as the root of a plan tree, and its time."""

from __future__ import annotations

from pathlib import Path

from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.core.events import PhaseChanged
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Class
from mtmc_engine.plan.tree import ROOT, PlanTree
from mtmc_engine.proof.progress import GateProgress
from mtmc_engine.proof.prove import Bounds, Subject, prove
from mtmc_engine.schedule.cost import cost_of, estimate_us, floor_us
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.session.inbox import Inbox
from mtmc_engine.session.outlet import Outlet
from mtmc_engine.session.run import Run, node_event
from mtmc_engine.system.config import StageLimits
from mtmc_engine.system.jobs import Workshop


def original_program(task: Task) -> Program:
    """The program that every session starts from: the library, call by call."""
    schedule = root(task.graph)
    return Program(render(task, schedule), schedule)


async def baseline(
    task: Task,
    outlet: Outlet,
    inbox: Inbox,
    workshop: Workshop,
    *,
    scratch: Path,
    seed: int,
    limits: StageLimits,
) -> PlanTree:
    """A tree whose root is the original: measured on a GPU, else estimated.

    Raises ReferenceFailed where the user's operator fails on its own inputs, Interrupted where
    the user stops.
    """
    program = original_program(task)
    if not task.device.present:
        return PlanTree(program, estimate(task, program))
    subject = Subject(
        task=task,
        source=program.source,
        name=ROOT,
        folder=str(scratch),
        schedule=program.schedule,
        seed=seed,
        bounds=Bounds.of(limits),
    )

    def tell(progress: GateProgress) -> None:
        counted = (progress.done, progress.total) if progress.total else (None, None)
        outlet.emit(PhaseChanged("time", f"the original: {progress.gate.value}", *counted))

    verdict = await inbox.unless_interrupted(prove(subject, workshop, tell))
    if verdict.verdict is Class.REFERENCE_ERROR:
        raise ReferenceFailed(verdict.reason)
    if verdict.measurement is None:
        outlet.warn(f"The original could not be measured: {verdict.reason}")
    return PlanTree(program, verdict.measurement or estimate(task, program))


def adopt(run: Run, task: Task, tree: PlanTree) -> None:
    """Make this the run's tree and tell of its root: from now on the session can be resumed."""
    run.task, run.tree, run.current, run.best = task, tree, ROOT, ROOT
    run.records, run.refused_stops, run.proposal = [], set(), None
    facts = {"target": task.device.name, "digest": task.digest, "task": task}
    run.outlet.emit(node_event(run, tree.root), program=tree.root.program, facts=facts)


def estimate(task: Task, program: Program) -> Measurement:
    """The estimated time of a program, marked as such."""
    costs = cost_of(task, program.schedule, task.device)
    return Measurement(
        kind="estimated",
        time_us=estimate_us(costs, task.device),
        against={},
        floor_us=floor_us(task, task.device),
        method=f"roofline estimate for {task.device.name}",
        groups=costs,
    )
