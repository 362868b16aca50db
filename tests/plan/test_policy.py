"""The table of --yes, branches that wait, and the ends of a session."""

from __future__ import annotations

import pytest

from mtmc_engine.core.action import ENABLING, Action
from mtmc_engine.core.measurement import Measurement, Ratio
from mtmc_engine.core.program import Program, Schedule
from mtmc_engine.core.task import Policy
from mtmc_engine.core.verdict import PROVEN, Class, Verdict
from mtmc_engine.plan.policy import close_branches, decide, ended, next_node, paid_off
from mtmc_engine.plan.tree import PlanTree

LOWER = Action("lower", "lower r1", "r1")
RETILE = Action("retile", "retile r1 to 128x128x32", "r1")
ALLOW, FORBID = Policy(), Policy(library="forbid")


def times(kind="measured", original=1.0, time_us=100.0, **against) -> Measurement:
    """Ratios are exact; the original's is always there."""
    ratios = {name: Ratio(value, value, value) for name, value in against.items()}
    ratios["original"] = Ratio(original, original, original)
    return Measurement(kind, time_us, ratios, 10.0, "test")


def verdict(name: Class) -> Verdict:
    return Verdict(name, "because")


@pytest.mark.parametrize(
    ("name", "action", "ratio", "kind", "expected"),
    [
        (Class.FASTER, RETILE, 1.4, "measured", ("approve", "kept")),
        (Class.FASTER, LOWER, 1.4, "measured", ("approve", "kept")),
        (Class.SAME, RETILE, 1.0, "measured", ("reject", "rejected")),
        (Class.AMBIGUOUS, RETILE, 1.05, "measured", ("reject", "rejected")),
        (Class.SLOWER, RETILE, 0.8, "measured", ("reject", "rejected")),
        (Class.SAME, LOWER, 1.0, "measured", ("approve", "open")),
        (Class.AMBIGUOUS, LOWER, 1.05, "measured", ("approve", "open")),
        (Class.SLOWER, LOWER, 0.8, "measured", ("approve", "open")),
        (Class.UNTIMED, RETILE, 1.4, "estimated", ("approve", "kept")),
        (Class.UNTIMED, RETILE, 1.005, "estimated", ("reject", "rejected")),
        (Class.UNTIMED, RETILE, None, "estimated", ("reject", "rejected")),
        (Class.UNTIMED, LOWER, 1.4, "estimated", ("approve", "kept")),
        (Class.UNTIMED, LOWER, 0.9, "estimated", ("approve", "open")),
        (Class.UNTIMED, LOWER, None, "estimated", ("approve", "open")),
        (Class.NOT_OWN_KERNEL, RETILE, 1.4, "measured", ("approve", "kept")),
        (Class.NOT_OWN_KERNEL, RETILE, 0.9, "measured", ("reject", "rejected")),
        (Class.NOT_OWN_KERNEL, LOWER, 0.9, "measured", ("approve", "open")),
        (Class.REFERENCE_ERROR, LOWER, None, "measured", ("stop", "failed")),
    ],
)
def test_the_table(name, action, ratio, kind, expected):
    measurement = times(kind, previous=ratio) if ratio else None
    assert decide(verdict(name), action, ALLOW, measurement)[:2] == expected


@pytest.mark.parametrize(
    "name", sorted(set(Class) - PROVEN - {Class.NOT_OWN_KERNEL, Class.REFERENCE_ERROR})
)
def test_every_other_class_is_rejected_even_for_enabling_steps(name):
    ruling = decide(verdict(name), LOWER, ALLOW, times(previous=3.0))
    assert ruling[:2] == ("reject", "failed")
    assert name in ruling.sentence
    assert "because" in ruling.sentence


@pytest.mark.parametrize("library", ["forbid", 0.5])
def test_library_calls_are_rejected_where_the_policy_forbids_them(library):
    ruling = decide(
        verdict(Class.NOT_OWN_KERNEL), LOWER, Policy(library=library), times(previous=3.0)
    )
    assert ruling[:2] == ("reject", "failed")


def test_the_lower_end_of_the_interval_decides():
    wide = Measurement("measured", 90.0, {"previous": Ratio(1.3, 0.9, 1.7)}, 1.0, "test")
    assert decide(verdict(Class.NOT_OWN_KERNEL), RETILE, ALLOW, wide).choice == "reject"


def test_an_estimate_is_marked_and_a_measured_time_is_not():
    by_estimate = decide(verdict(Class.UNTIMED), RETILE, ALLOW, times("estimated", previous=1.4))
    measured = decide(verdict(Class.FASTER), RETILE, ALLOW, times(previous=1.4))
    assert by_estimate.sentence == "It is by estimate 1.40 times as fast as the step before."
    assert measured.sentence == "It is 1.40 times as fast as the step before."
    replayed = decide(verdict(Class.FASTER), RETILE, ALLOW, times("replayed", previous=1.4))
    slower = decide(verdict(Class.SLOWER), RETILE, ALLOW, times("replayed", previous=0.5))
    assert replayed.sentence == "It is by the recording 1.40 times as fast as the step before."
    assert "(by the recording 0.50x)" in slower.sentence


@pytest.mark.parametrize("kind", sorted(ENABLING))
def test_enabling_kinds_wait_and_say_so(kind):
    ruling = decide(verdict(Class.SLOWER), Action(kind, f"{kind} r1"), ALLOW, times(previous=0.9))
    assert ruling.state == "open"
    assert "open for 3 more steps" in ruling.sentence


# -- branches --------------------------------------------------------------------------------


def grown(*steps: tuple[str, Class, str, float], kind="measured") -> PlanTree:
    """A tree of (parent, class, state, ratio to the original), one node a step from 1 on."""
    program = Program("", Schedule(()))
    tree = PlanTree(program, times(kind))
    for number, (parent, name, state, ratio) in enumerate(steps, start=1):
        node = tree.add(parent, LOWER, program, number)
        measurement = times(kind, original=ratio, time_us=100 / ratio)
        tree.prove(node.id, verdict(name), measurement)
        tree.set_state(node.id, state)
    return tree


def test_an_open_step_is_kept_when_a_later_one_beats_what_it_left():
    tree = grown(("n0", Class.SLOWER, "open", 0.9), ("n1", Class.FASTER, "kept", 1.3))
    assert paid_off(tree, "n2") == ("n1",)


def test_an_open_step_waits_while_the_branch_is_behind():
    tree = grown(("n0", Class.SLOWER, "open", 0.7), ("n1", Class.FASTER, "kept", 0.95))
    assert paid_off(tree, "n2") == ()
    assert tree.best().id == "n0"


def test_the_branch_is_compared_with_the_kept_program_that_it_left():
    tree = grown(
        ("n0", Class.FASTER, "kept", 2.0),
        ("n1", Class.SLOWER, "open", 1.5),
        ("n2", Class.SAME, "open", 1.5),
        ("n3", Class.FASTER, "kept", 1.9),
        ("n4", Class.FASTER, "kept", 2.4),
    )
    assert paid_off(tree, "n4") == ()
    assert paid_off(tree, "n5") == ("n2", "n3")


def test_a_branch_closes_after_three_further_steps():
    tree = grown(("n0", Class.SLOWER, "open", 0.9), ("n1", Class.SLOWER, "open", 0.8))
    assert [n.id for n in tree.open_branches(4)] == ["n1", "n2"]
    assert close_branches(tree, 4) == ()
    assert close_branches(tree, 5) == (("n1", "rejected"),)
    assert [n.id for n in tree.open_branches(5)] == ["n2"]


def test_the_session_goes_back_to_the_best_program_when_its_branch_closes():
    tree = grown(("n0", Class.FASTER, "kept", 1.5), ("n1", Class.SLOWER, "open", 1.2))
    closed = dict(close_branches(tree, 6))
    assert closed == {"n2": "rejected"}
    assert next_node(tree, "n2", closed) == "n1"
    assert next_node(tree, "n1", closed) == "n1"


def test_an_open_step_below_which_the_best_program_grew_is_not_rejected():
    tree = grown(
        ("n0", Class.FASTER, "kept", 2.0),
        ("n1", Class.SLOWER, "open", 1.9),
        ("n2", Class.FASTER, "kept", 2.01),
    )
    assert paid_off(tree, "n3") == ()
    assert close_branches(tree, 6) == (("n2", "kept"),)


# -- ends ------------------------------------------------------------------------------------


def test_until_compares_the_best_program_with_the_original():
    tree = grown(("n0", Class.FASTER, "kept", 1.6), ("n1", Class.SLOWER, "open", 1.1))
    reached = ended(tree, 3, 8, until=1.5)
    assert reached is not None
    assert reached.stopped_by == "until"
    assert reached.sentence == (
        "The best program is 1.60 times as fast as the original; 1.5 was asked for."
    )
    assert ended(tree, 3, 8, until=1.7) is None


def test_until_on_estimates_says_so():
    tree = grown(("n0", Class.UNTIMED, "kept", 1.6), kind="estimated")
    reached = ended(tree, 2, 8, until=1.5)
    assert reached is not None
    assert "by estimate 1.60" in reached.sentence


def test_until_is_not_reached_by_a_rejected_program():
    tree = grown(("n0", Class.FASTER, "rejected", 9.0))
    assert ended(tree, 2, 8, until=1.5) is None


def test_steps_end_a_session():
    tree = grown(("n0", Class.FASTER, "kept", 1.6))
    assert ended(tree, 8, 8, until=None) is None
    assert ended(tree, 9, 8, until=None).stopped_by == "steps"


def test_no_gain_is_said_with_what_follows_from_it():
    even = times("estimated", previous=1.0)
    opened = decide(verdict(Class.UNTIMED), LOWER, ALLOW, even).sentence
    dropped = decide(verdict(Class.UNTIMED), RETILE, ALLOW, even).sentence
    assert opened == (
        "It is by estimate no faster than the step before (1.00x), but lower makes other steps"
        " possible that may pay: it stays open for 3 more steps."
    )
    assert dropped == (
        "It is by estimate no faster than the step before (1.00x),"
        " and retile is kept only where it is faster."
    )
