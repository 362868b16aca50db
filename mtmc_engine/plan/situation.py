"""The state of a session at one node of its plan tree."""

from __future__ import annotations

from mtmc_engine.core.task import Task
from mtmc_engine.plan.state import PastStep, State
from mtmc_engine.plan.tree import PlanTree
from mtmc_engine.schedule.cost import cost_of, estimate_us


def state_at(
    task: Task,
    tree: PlanTree,
    node: str,
    *,
    step: int,
    max_steps: int,
    hints: tuple[str, ...] = (),
) -> State:
    """What a planner is asked about `node` before step `step`.

    Times are the node's measured ones where it has them, else estimates; measured groups
    likewise. History holds every judged step of the tree, in order of time.
    """
    program, measurement = tree[node].program, tree[node].measurement
    estimates = cost_of(task, program.schedule, task.device)
    return State(
        task=task,
        schedule=program.schedule,
        costs=(measurement.groups if measurement else ()) or estimates,
        time_us=measurement.time_us if measurement else estimate_us(estimates, task.device),
        time_kind=measurement.kind if measurement else "estimated",
        history=_history(tree, node),
        step=step,
        max_steps=max_steps,
        hints=hints,
    )


def _history(tree: PlanTree, node: str) -> tuple[PastStep, ...]:
    contained = {n.id for n in tree.path(node)}
    steps = []
    for made in tree.one_a_step():
        if made.action is None or made.verdict is None:
            continue
        ratio = made.measurement.against.get("previous") if made.measurement else None
        steps.append(
            PastStep(
                phrase=made.action.phrase,
                verdict=made.verdict.verdict.value,
                ratio=ratio.value if ratio else None,
                kept=made.id in contained,
            )
        )
    return tuple(steps)
