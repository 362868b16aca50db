"""What --yes decides: the table of verdict classes, and when a session ends."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from mtmc_engine.core.action import ENABLING, Action
from mtmc_engine.core.events import Choice
from mtmc_engine.core.measurement import Measurement, TimeKind
from mtmc_engine.core.task import Policy
from mtmc_engine.core.verdict import Class, Verdict
from mtmc_engine.plan.tree import MARGIN, OPEN_STEPS, NodeState, PlanTree

_MARKS: dict[TimeKind, str] = {
    "measured": "",
    "replayed": "by the recording ",
    "estimated": "by estimate ",
}


class Ruling(NamedTuple):
    """choice: as a user would answer. state: of the node from now on. sentence: why."""

    choice: Choice
    state: NodeState
    sentence: str


class Ending(NamedTuple):
    """Why no further step is taken. stopped_by: a word of SessionFinished."""

    stopped_by: Literal["steps", "until"]
    sentence: str


def decide(
    verdict: Verdict, action: Action, policy: Policy, measurement: Measurement | None = None
) -> Ruling:
    """The ruling of --yes on a proven or failed candidate; repair rounds are over.

    measurement: of the candidate; the verdict's own where it is None. Without a GPU (UNTIMED) its
    estimate decides, and the sentence says "estimated".
    """
    measurement = measurement or verdict.measurement
    match verdict.verdict:
        case Class.FASTER:
            return Ruling("approve", "kept", f"It is {_pace(measurement)}.")
        case Class.SAME | Class.AMBIGUOUS | Class.SLOWER:
            return _not_faster(action, _slow_words(verdict.verdict, measurement))
        case Class.UNTIMED:
            return _by_ratio(action, measurement)
        case Class.NOT_OWN_KERNEL if policy.library == "allow":
            return _by_ratio(action, measurement, " (its work is done by library calls)")
        case Class.REFERENCE_ERROR:
            return Ruling("stop", "failed", f"The reference itself fails: {verdict.reason}")
        case _:
            return Ruling("reject", "failed", f"{verdict.verdict}: {verdict.reason}")


def _by_ratio(action: Action, measurement: Measurement | None, remark: str = "") -> Ruling:
    ratio = measurement.against.get("previous") if measurement else None
    if measurement is None or ratio is None:
        return _not_faster(action, f"It is proven but not timed{remark}")
    if ratio.low > 1 + MARGIN:
        return Ruling("approve", "kept", f"It is {_pace(measurement)}{remark}.")
    if ratio.low < 1 - MARGIN:
        return _not_faster(action, f"It is {_pace(measurement)}{remark}")
    mark = _MARKS[measurement.kind]
    finding = f"It is {mark}no faster than the step before ({ratio.value:.2f}x){remark}"
    return _not_faster(action, finding)


def _not_faster(action: Action, finding: str) -> Ruling:
    if action.kind in ENABLING:
        sentence = (
            f"{finding}, but {action.kind} makes other steps possible that may pay: "
            f"it stays open for {OPEN_STEPS} more steps."
        )
        return Ruling("approve", "open", sentence)
    sentence = f"{finding}, and {action.kind} is kept only where it is faster."
    return Ruling("reject", "rejected", sentence)


def _slow_words(verdict: Class, measurement: Measurement | None) -> str:
    words = {
        Class.SAME: "It is as fast as the step before",
        Class.AMBIGUOUS: "It is not proven faster than the step before",
        Class.SLOWER: "It is slower than the step before",
    }[verdict]
    ratio = measurement.against.get("previous") if measurement else None
    if measurement is None or ratio is None:
        return words
    return f"{words} ({_MARKS[measurement.kind]}{ratio.value:.2f}x)"


def _pace(measurement: Measurement | None) -> str:
    """ "1.40 times as fast as the step before", with the word estimated where it is."""
    ratio = measurement.against.get("previous") if measurement else None
    if measurement is None or ratio is None:
        return "faster than the step before"
    mark = _MARKS[measurement.kind]
    return f"{mark}{ratio.value:.2f} times as fast as the step before"


def paid_off(tree: PlanTree, node: str) -> tuple[str, ...]:
    """Open ancestors of a newly kept node that are kept from now on, since it beats the program
    that they left: the nearest kept one above them.
    """
    above = tree.path(node)[:-1]
    waiting = [n for n in above if n.state == "open"]
    if not waiting:
        return ()
    left = tree.standing(above[above.index(waiting[0]) - 1].id)
    now = tree.standing(node)
    if left is None or now is None or now.low <= left.ratio * (1 + MARGIN):
        return ()
    return tuple(n.id for n in waiting)


def close_branches(tree: PlanTree, step: int) -> tuple[tuple[str, NodeState], ...]:
    """New states, before step `step`, of the open nodes whose further steps are spent.

    "rejected", or "kept" where the best proven program grew from them.
    """
    answer = {n.id for n in tree.path(tree.best().id)}
    return tuple((n.id, "kept" if n.id in answer else "rejected") for n in tree.expired(step))


def next_node(tree: PlanTree, current: str, closed: Collection[str]) -> str:
    """Where the session goes on: `current`, or the best program if its branch is in `closed`."""
    if any(n.id in closed for n in tree.path(current)):
        return tree.best().id
    return current


def ended(tree: PlanTree, step: int, max_steps: int, until: float | None) -> Ending | None:
    """Whether the session ends before step `step`: its goal is reached or its steps are spent.

    until: speed against the original that suffices; measured, or estimated without a GPU.
    """
    best = tree.standing(tree.best().id)
    if until is not None and best is not None and best.ratio >= until:
        mark = _MARKS[best.kind]
        sentence = f"The best program is {mark}{best.ratio:.2f} times as fast as the original"
        return Ending("until", f"{sentence}; {until:g} was asked for.")
    if step > max_steps:
        return Ending("steps", f"All {max_steps} steps are taken.")
    return None
