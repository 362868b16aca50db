"""What a coder is told about a step besides the program and the action."""

from __future__ import annotations

from dataclasses import replace

from mtmc_engine.coder.llm.feedback import feedback_of
from mtmc_engine.coder.seam import Feedback
from mtmc_engine.plan.situation import state_at
from mtmc_engine.plan.tree import TreeNode
from mtmc_engine.schedule.cost import floor_us
from mtmc_engine.schedule.regions import regions_in
from mtmc_engine.session.run import Run, StepRecord

VERDICTS_TOLD = 4


def feedback_on(run: Run, node: TreeNode) -> Feedback | None:
    """What a failed candidate taught; None where it did not fail."""
    if node.verdict is None:
        return None
    feedback = feedback_of(node.verdict, node.program.source, node.coder)
    earlier = judged_before(run, node)
    if feedback is None or earlier is None:
        return feedback
    again = (
        f"This is the very source of attempt {earlier.attempt}, which failed: {feedback.sentence}."
        " It is not judged again: write it differently."
    )
    return replace(feedback, sentence=again)


def judged_before(run: Run, node: TreeNode) -> TreeNode | None:
    """The node whose source is the same and was judged bad before; None where there is none."""
    for earlier in run.tree:
        if earlier.id == node.id:
            return None
        if earlier.program.digest == node.program.digest and is_bad(earlier):
            return earlier
    return None


def is_bad(node: TreeNode) -> bool:
    """Whether a gate refused it."""
    return node.verdict is not None and node.state == "failed"


def evidence_at(run: Run, node: str) -> tuple[str, ...]:
    """Where the program's time goes, a sentence each; measured and estimated are told apart."""
    state = state_at(run.task, run.tree, node, step=run.next_step, max_steps=run.max_steps)
    floor = floor_us(run.task, run.task.device)
    whole = (
        f"The program takes {state.time_us:.1f} us ({state.time_kind}); its compulsory bytes "
        f"alone take {floor:.1f} us."
    )
    costs = {cost.region: cost for cost in state.costs}
    parts = [
        f"{region.id} {region.label}: {costs[region.id].share:.0%} of the time, "
        f"{costs[region.id].of_peak:.0%} of what {costs[region.id].bound} allows."
        for region in regions_in(run.task.graph, state.schedule)
        if region.id in costs
    ]
    return (whole, *parts)


def last_verdicts(run: Run) -> tuple[str, ...]:
    """The last decided steps, a sentence each, oldest first."""
    decided = [record for record in run.records if record.choice is not None and record.node]
    return tuple(_told(run, record) for record in decided[-VERDICTS_TOLD:])


def _told(run: Run, record: StepRecord) -> str:
    verdict = run.tree[record.node].verdict
    kept = "kept" if record.choice == "approve" else "not kept"
    found = f"{verdict.verdict.value}, {verdict.reason}" if verdict else record.reason
    return f"{record.action.phrase}: {found} ({kept})"
