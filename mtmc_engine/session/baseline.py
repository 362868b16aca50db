"""The original as the root of a plan tree, and its time."""

from __future__ import annotations

from pathlib import Path

from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.core.events import PhaseChanged
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Class, Verdict
from mtmc_engine.plan.tree import ROOT, PlanTree
from mtmc_engine.proof.progress import GateProgress
from mtmc_engine.proof.prove import Bounds, Subject, prove
from mtmc_engine.proof.timing.timer import Timer
from mtmc_engine.schedule.cost import cost_of, estimate_us, floor_us
from mtmc_engine.schedule.original import original_program
from mtmc_engine.session.inbox import Inbox
from mtmc_engine.session.outlet import Outlet
from mtmc_engine.session.run import Run, node_event
from mtmc_engine.session.stage import Stage
from mtmc_engine.system.config import StageLimits
from mtmc_engine.system.jobs import Workshop


async def baseline(
    task: Task,
    outlet: Outlet,
    inbox: Inbox,
    workshop: Workshop,
    *,
    scratch: Path,
    seed: int,
    limits: StageLimits,
    timer: Timer | None = None,
) -> PlanTree:
    """A tree whose root is the original: measured on a GPU or by `timer`, else estimated.

    A program that the user wrote in Triton is proven first, like any candidate; where it is
    wrong that is said, and all steps are compared with the reference just the same.
    Raises ReferenceFailed where the user's operator fails on its own inputs, Interrupted where
    the user stops.
    """
    program = original_program(task)
    if not task.device.present and timer is None and not task.program:
        return PlanTree(program, estimate(task, program))
    subject = Subject(
        task=task,
        source=program.source,
        name=ROOT,
        folder=str(scratch),
        schedule=program.schedule,
        original="" if task.program else "eager",
        seed=seed,
        bounds=Bounds.of(limits),
    )

    stage = Stage(limits)

    def tell(progress: GateProgress) -> None:
        stage.enter(progress.gate)
        done, total = (progress.done, progress.total) if progress.total else (None, None)
        detail = f"the original: {progress.gate.value}"
        outlet.emit(PhaseChanged("time", detail, done, total, stage.left_s))

    verdict = await inbox.unless_interrupted(prove(subject, workshop, tell, timer=timer))
    if verdict.verdict is Class.REFERENCE_ERROR:
        raise ReferenceFailed(verdict.reason)
    if task.program:
        return _tree_of_own(program, verdict, outlet)
    if verdict.measurement is None:
        outlet.warn(f"The original could not be measured: {verdict.reason}")
    return PlanTree(program, verdict.measurement or estimate(task, program))


def _tree_of_own(program: Program, verdict: Verdict, outlet: Outlet) -> PlanTree:
    """A tree whose root is the user's own Triton program, with the verdict on it."""
    if verdict.proven:
        outlet.notice(f"The original is proven against its reference: {verdict.reason}.")
    else:
        outlet.warn(
            f"The original itself is wrong ({verdict.verdict.value}: {verdict.reason}): "
            "each step is compared with the reference all the same."
        )
    tree = PlanTree(program, verdict.measurement)
    tree.prove(ROOT, verdict)
    return tree


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
