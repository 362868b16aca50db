"""A session in figures: what scripts read at its end."""

from __future__ import annotations

from collections.abc import Sequence

from mtmc_engine.core.events import AttemptSummary, BestSummary, SessionFinished, StepSummary
from mtmc_engine.core.verdict import Class
from mtmc_engine.plan.tree import PlanTree, TreeNode
from mtmc_engine.session.run import Run, StepRecord


def step_summaries(run: Run) -> tuple[StepSummary, ...]:
    """All decided steps, oldest first."""
    return summarise(run.tree, run.records)


def summarise(tree: PlanTree, records: Sequence[StepRecord]) -> tuple[StepSummary, ...]:
    """The decided ones of these steps."""
    return tuple(_step(tree, record) for record in records if record.choice is not None)


def _step(tree: PlanTree, record: StepRecord) -> StepSummary:
    node = tree[record.node] if record.node else None
    verdict = node.verdict if node else None
    measurement = node.measurement if node else None
    standing = tree.standing(record.node) if node else None
    return StepSummary(
        step=record.step,
        node=record.node,
        action=record.action.kind,
        phrase=record.action.phrase,
        verdict=verdict.verdict.value if verdict else "",
        approved=record.choice == "approve",
        time_us=measurement.time_us if measurement else None,
        time_kind=measurement.kind if measurement else None,
        ratio_to_original=standing.ratio if standing else None,
        reason=record.reason or (verdict.reason if verdict else ""),
        planner_seconds=record.planner_seconds,
        coder=node.coder if node else "",
        attempts=tuple(_attempt(tree[name]) for name in record.nodes),
    )


def _attempt(node: TreeNode) -> AttemptSummary:
    verdict = node.verdict
    return AttemptSummary(
        node=node.id,
        attempt=node.attempt,
        sample=node.sample,
        coder=node.coder,
        verdict=verdict.verdict.value if verdict else "",
        reason=verdict.reason if verdict else "",
    )


def best_summary(run: Run) -> BestSummary:
    """The answer of the session: its best proven program, or the original."""
    best = run.tree.best()
    standing = run.tree.standing(best.id)
    measurement = best.measurement
    against = measurement.against if measurement else {}
    return BestSummary(
        node=best.id,
        is_original=best.parent is None,
        time_us=measurement.time_us if measurement else None,
        time_kind=measurement.kind if measurement else None,
        ratio_to_original=standing.ratio if standing else None,
        against={name: ratio.value for name, ratio in against.items()},
        actions=run.tree.phrases(best.id),
        reason=_reason(run, best),
    )


def _reason(run: Run, best: TreeNode) -> str:
    if best.parent is not None:
        return "" if best.measurement else "It was kept by hand: nothing here can time it."
    untimed = len([node for node in run.tree if _only_lacks_a_time(node)])
    if not untimed:
        return "No step helped." if run.records else "No step was tried."
    many = f"{untimed} steps are proven but were not timed"
    steps = many if untimed > 1 else "1 step is proven but was not timed"
    if run.follows_policy:
        return f"{steps}: keep one by hand, without --yes, or run this where there is a GPU."
    return f"{steps}, and none was kept."


def _only_lacks_a_time(node: TreeNode) -> bool:
    verdict = node.verdict
    untimed = verdict is not None and verdict.verdict is Class.UNTIMED and not node.measurement
    return untimed and node.parent is not None


def finished(run: Run, session: str, stopped_by: str, exit_code: int = 0) -> SessionFinished:
    """The last event of a run."""
    return SessionFinished(
        task=run.task.name,
        target=run.task.device.name,
        steps=step_summaries(run),
        best=best_summary(run),
        export=run.exported,
        session=session,
        stopped_by=stopped_by,
        exit_code=exit_code,
    )
