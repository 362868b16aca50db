"""The plan tree: ids, paths, and which program is the best."""

from __future__ import annotations

import pytest

from mtmc_engine.core.action import Action
from mtmc_engine.core.measurement import Measurement, Ratio
from mtmc_engine.core.program import Program, Schedule
from mtmc_engine.core.verdict import Class, Verdict
from mtmc_engine.plan.tree import PlanTree

PROGRAM = Program("source", Schedule(()))


def step(name: str) -> Action:
    return Action("lower", name, "r1")


def time(time_us: float, kind="measured", **against: float | tuple[float, float]) -> Measurement:
    ratios = {}
    for name, value in against.items():
        ratio, low = value if isinstance(value, tuple) else (value, value)
        ratios[name] = Ratio(ratio, low, ratio)
    return Measurement(kind, time_us, ratios, 1.0, "test")


def proven(tree: PlanTree, parent: str, measurement, state="kept", name=Class.FASTER) -> str:
    node = tree.add(parent, step(f"step {len(tree)}"), PROGRAM, len(tree))
    tree.prove(node.id, Verdict(name, ""), measurement)
    tree.set_state(node.id, state)
    return node.id


def test_nodes_are_numbered_and_keep_their_parents():
    tree = PlanTree(PROGRAM)
    first = tree.add("n0", step("a"), PROGRAM, 1)
    second = tree.add("n0", step("b"), PROGRAM, 2)
    third = tree.add(first.id, step("c"), PROGRAM, 3)
    assert [n.id for n in tree] == ["n0", "n1", "n2", "n3"]
    assert [n.id for n in tree.path(third.id)] == ["n0", "n1", "n3"]
    assert [n.id for n in tree.children("n0")] == ["n1", "n2"]
    assert tree.tried("n0") == ("a", "b")
    assert second.state == "open"
    assert third.opened_at == 3


def test_an_unknown_parent_is_refused_and_nothing_is_added():
    tree = PlanTree(PROGRAM)
    with pytest.raises(KeyError):
        tree.add("n7", step("a"), PROGRAM, 1)
    assert len(tree) == 1


def test_a_snapshot_does_not_change():
    tree = PlanTree(PROGRAM)
    before = tree.add("n0", step("a"), PROGRAM, 1)
    after = tree.prove("n1", Verdict(Class.SAME, "", measurement=time(5.0)))
    assert before.verdict is None
    assert after.measurement.time_us == 5.0
    assert tree["n1"] is after


def test_the_original_is_the_answer_where_nothing_helps():
    tree = PlanTree(PROGRAM, time(100))
    proven(tree, "n0", time(120, original=0.83), name=Class.SLOWER)
    proven(tree, "n0", time(50, original=2.0), state="rejected")
    proven(tree, "n0", time(10, original=10.0), state="failed", name=Class.NUMERIC)
    proven(tree, "n0", time(10, original=10.0), state="kept", name=Class.SUSPICIOUS)
    assert tree.best() is tree.root


def test_faster_means_that_the_lower_end_is_above_the_margin():
    tree = PlanTree(PROGRAM, time(100))
    proven(tree, "n0", time(90, original=(1.11, 0.98)))
    assert tree.best().id == "n0"
    proven(tree, "n0", time(97, original=(1.03, 1.02)))
    assert tree.best().id == "n2"


def test_the_best_is_not_the_last():
    tree = PlanTree(PROGRAM, time(100))
    fast = proven(tree, "n0", time(40, original=2.5))
    proven(tree, fast, time(50, original=2.0))
    assert tree.best().id == fast
    assert tree.standing(fast).ratio == 2.5


def test_measured_and_estimated_times_are_never_compared():
    tree = PlanTree(PROGRAM, time(100))
    proven(tree, "n0", time(1, "estimated", original=100.0), name=Class.UNTIMED)
    assert tree.best().id == "n0"
    assert tree.standing("n1") is None
    estimates = PlanTree(PROGRAM, time(100, "estimated"))
    proven(estimates, "n0", time(50, "estimated"), name=Class.UNTIMED)
    proven(estimates, "n0", time(10))
    assert estimates.best().id == "n1"
    assert estimates.standing("n1").ratio == 2.0


def test_without_a_time_of_the_original_only_paired_ratios_count():
    tree = PlanTree(PROGRAM)
    proven(tree, "n0", time(50))
    assert tree.best().id == "n0"
    proven(tree, "n0", time(50, original=1.5))
    assert tree.best().id == "n2"


def test_one_node_stands_for_all_attempts_of_a_step():
    tree = PlanTree(PROGRAM, time(100))
    for attempt in (1, 2, 3):
        tree.add("n0", step("lower r1"), PROGRAM, 1, attempt=attempt, coder="model")
    tree.prove("n2", Verdict(Class.FASTER, ""), time(50, original=2.0))
    assert [node.id for node in tree.one_a_step()] == ["n2"]
    tree.set_state("n2", "rejected")
    tree.add("n0", step("lower r1"), PROGRAM, 2)
    assert [node.id for node in tree.one_a_step()] == ["n2", "n4"]


def test_where_nothing_can_be_timed_what_was_kept_last_by_hand_is_the_answer():
    tree = PlanTree(PROGRAM)
    proven(tree, "n0", None, "rejected", Class.UNTIMED)
    assert tree.best().id == "n0"
    proven(tree, "n0", None, "kept", Class.UNTIMED)
    proven(tree, "n2", None, "kept", Class.UNTIMED)
    proven(tree, "n3", None, "open", Class.UNTIMED)
    proven(tree, "n3", None, "kept", Class.NUMERIC)
    assert tree.best().id == "n3"
    proven(tree, "n3", time(5), "rejected")
    assert tree.best().id == "n0"
