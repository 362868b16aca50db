"""The state at a node: its own times, and all that happened in the tree."""

from __future__ import annotations

import pytest
from plan_tasks import linear_relu_softmax

from mtmc_engine.core.action import Action
from mtmc_engine.core.measurement import GroupCost, Measurement, Ratio
from mtmc_engine.core.program import Program
from mtmc_engine.core.verdict import Class, Verdict
from mtmc_engine.plan.situation import state_at
from mtmc_engine.plan.state import PastStep
from mtmc_engine.plan.state_text import state_text
from mtmc_engine.plan.tree import PlanTree
from mtmc_engine.schedule.cost import cost_of, estimate_us
from mtmc_engine.schedule.regions import root

TASK = linear_relu_softmax()


def measurement(time_us: float, previous: float, groups=()) -> Measurement:
    ratio = Ratio(previous, previous, previous)
    return Measurement("measured", time_us, {"previous": ratio}, 7.9, "test", groups=groups)


@pytest.fixture
def tree() -> PlanTree:
    program = Program("", root(TASK.graph))
    tree = PlanTree(program)
    for parent, phrase, name, found in [
        ("n0", "lower r1", Class.SLOWER, measurement(300, 0.8)),
        ("n0", "lower r3", Class.NUMERIC, None),
        ("n1", "fuse r2 into r1", Class.FASTER, measurement(120, 2.5)),
    ]:
        node = tree.add(parent, Action(phrase.split()[0], phrase), program, len(tree))
        tree.prove(node.id, Verdict(name, ""), found)
    tree.add("n3", Action("lower", "lower r2"), program, 4)  # not judged yet
    return tree


def test_history_says_what_the_program_contains(tree):
    state = state_at(TASK, tree, "n3", step=4, max_steps=8)
    assert state.history == (
        PastStep("lower r1", "SLOWER", 0.8, kept=True),
        PastStep("lower r3", "NUMERIC", None, kept=False),
        PastStep("fuse r2 into r1", "FASTER", 2.5, kept=True),
    )
    changing = state_text(state).changing
    assert changing.startswith("Step 4 of 8. 120us, floor 7.9us\n")
    assert "lower r3: numeric, undone\nfuse r2 into r1: 2.5x, kept\nNext step:" in changing


def test_times_are_estimates_where_none_is_measured(tree):
    state = state_at(TASK, tree, "n0", step=1, max_steps=8)
    costs = cost_of(TASK, root(TASK.graph), TASK.device)
    assert state.costs == costs
    assert state.time_us == estimate_us(costs, TASK.device)
    assert state.time_kind == "estimated"
    assert not any(past.kept for past in state.history)


def test_measured_groups_go_before_estimated_ones(tree):
    group = GroupCost("r1", 100.0, 1, 1, 1.0, 0.5, "memory")
    tree.measure("n3", measurement(120, 2.5, (group,)))
    state = state_at(TASK, tree, "n3", step=4, max_steps=8)
    assert state.costs == (group,)
    assert state.time_kind == "measured"
