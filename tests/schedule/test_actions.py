"""Actions: what is offered, what it does, and what holds after any sequence of them."""

from __future__ import annotations

import ast
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_graphs import (
    Net,
    gelu_from_parts,
    linear_gelu_mean,
    rms_norm,
    softmax,
    swiglu,
    task,
)

from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.graph import node_refs
from mtmc_engine.core.program import Library, Templated
from mtmc_engine.schedule.actions import KINDS
from mtmc_engine.schedule.cost import cost_of, estimate_us
from mtmc_engine.schedule.legal import apply_action, legal_actions, parse_phrase
from mtmc_engine.schedule.phrases import MAX_TRIE_TOKENS, PhraseBudget
from mtmc_engine.schedule.regions import regions_in, regions_of, root
from mtmc_engine.schedule.render import render

ROOT_KINDS = {"lower", "library", "fuse", "fuse_epilogue", "simplify", "layout", "stop"}


def attention(batch=8, heads=16, length=512, width=64):
    """Scores, a scale, a softmax and the second product, with views between them."""
    net = Net()
    q = net.input("q", batch, length, heads, width)
    k = net.input("k", batch, length, heads, width)
    v = net.input("v", batch, length, heads, width)
    turned = (batch, heads, length, width)
    qt, kt, vt = (net.node("aten.permute.default", (x, [0, 2, 1, 3]), turned) for x in (q, k, v))
    kt = net.node("aten.transpose.int", (kt, -2, -1), (batch, heads, width, length))
    scores = net.node("aten.matmul.default", (qt, kt), (batch, heads, length, length))
    weights = net.softmax(net.binary("mul", scores, 0.125))
    return net.graph(net.node("aten.matmul.default", (weights, vt), turned))


def residual_block(rows=4096, width=1024):
    """A layer norm, two products and a residual whose value is read twice."""
    net = Net()
    x = net.input("x", rows, width)
    weight, bias = net.weight("g", width), net.weight("h", width)
    norm = net.node("aten.layer_norm.default", (x, [width], weight, bias), (rows, width))
    hidden = net.unary("relu", net.linear(norm, 4 * width))
    summed = net.binary("add", x, net.linear(hidden, width))
    return net.graph(net.softmax(summed), net.row("sum", summed))


GRAPHS = {
    "gelu": gelu_from_parts(),
    "rms_norm": rms_norm(),
    "linear_gelu_mean": linear_gelu_mean(),
    "swiglu": swiglu(),
    "softmax": softmax(),
    "long_softmax": softmax(256, 131072),
    "attention": attention(),
    "residual_block": residual_block(),
}
TASKS = {name: task(graph, tf32=True) for name, graph in GRAPHS.items()}


def offered(name, schedule=None, **options):
    operator = TASKS[name]
    return legal_actions(operator, schedule or root(operator.graph), operator.device, **options)


def walk(name, *phrases):
    operator = TASKS[name]
    schedule = root(operator.graph)
    for phrase in phrases:
        schedule = apply_action(operator, schedule, parse_phrase(operator, schedule, phrase))
    return schedule


@pytest.mark.parametrize("name", GRAPHS)
def test_the_root_offers_operator_level_steps_only_and_always_stop(name):
    actions = offered(name)
    assert {action.kind for action in actions} <= ROOT_KINDS
    assert actions[-1].kind == "stop"
    assert all(action.reason.endswith(".") for action in actions)


def test_stop_says_where_the_program_stands():
    """What it says is no reason to go on: launches that bind a small program are named."""
    for name in ("gelu", "softmax"):
        reason = offered(name)[-1].reason
        assert reason.startswith("The plan ends here: the program is at ")
        assert reason.endswith(" % of its roofline.")
    small = task(softmax(8, 64))
    reason = legal_actions(small, root(small.graph), small.device)[-1].reason
    assert reason == "The plan ends here: launches, not work, bind 100 % of the program's time."


def test_lowering_gives_one_region_a_kernel_and_leaves_the_others():
    schedule = walk("rms_norm", "lower r3")
    forms = {g.region: type(g.form) for g in schedule.groups}
    assert forms == {"r1": Library, "r2": Library, "r3": Templated}


def test_a_fused_region_keeps_its_smallest_number_and_is_recognised():
    schedule = walk("rms_norm", "fuse r2 into r1", "fuse r3 into r1")
    (region,) = regions_in(GRAPHS["rms_norm"], schedule)
    assert (region.id, region.label) == ("r1", "rms norm")


def test_library_takes_a_fused_region_apart_again():
    schedule = walk("rms_norm", "fuse r2 into r1", "fuse r3 into r1", "library r1")
    assert schedule == root(GRAPHS["rms_norm"])


def test_fuse_after_a_product_keeps_the_product_and_makes_one_kernel_of_the_rest():
    schedule = walk("linear_gelu_mean", "fuse after r1")
    assert [(g.region, type(g.form)) for g in schedule.groups] == [
        ("r1", Library),
        ("r2", Templated),
    ]
    phrases = {action.phrase for action in offered("linear_gelu_mean", schedule)}
    assert "fuse after r1" not in phrases


def test_two_regions_are_not_fused_around_a_third():
    """gelu feeds both the mean and the subtraction: fusing those two leaves the mean outside."""
    phrases = {action.phrase for action in offered("linear_gelu_mean")}
    assert "fuse r4 into r2" not in phrases
    with pytest.raises(UsageError, match="not legal"):
        walk("linear_gelu_mean", "fuse r4 into r2")


def test_regions_that_do_not_touch_are_not_fused():
    with pytest.raises(UsageError):
        walk("swiglu", "fuse r2 into r1")


def test_two_phrases_for_one_program_are_offered_once():
    net = Net()
    y = net.linear(net.input("x", 512, 512), 512)
    operator = task(net.graph(net.row("sum", net.unary("relu", y), keep=False)))
    schedule = root(operator.graph)
    phrases = [a.phrase for a in legal_actions(operator, schedule, operator.device)]
    assert ("fuse after r1" in phrases) != ("fuse r3 into r2" in phrases)
    judged = frozenset({"fuse after r1"})
    later = [a.phrase for a in legal_actions(operator, schedule, operator.device, judged)]
    assert not {"fuse after r1", "fuse r3 into r2"} & set(later)


def test_what_was_tried_is_not_offered_again():
    first = offered("rms_norm")[0].phrase
    assert first not in {action.phrase for action in offered("rms_norm", tried=frozenset({first}))}


def test_an_unknown_kind_is_a_usage_error():
    with pytest.raises(UsageError, match="no step of kind 'unroll'"):
        apply_action(TASKS["gelu"], root(GRAPHS["gelu"]), Action("unroll", "unroll r1", "r1"))


def test_a_kernel_level_step_needs_a_kernel():
    with pytest.raises(UsageError, match="not legal"):
        apply_action(TASKS["gelu"], root(GRAPHS["gelu"]), Action("vectorize", "vectorize r1", "r1"))


def test_every_kind_is_known_by_its_name():
    assert set(KINDS) >= ROOT_KINDS | {"one_pass", "retile", "pipeline", "vectorize"}
    for name, kind in KINDS.items():
        assert name == kind.NAME


def test_a_long_row_can_be_read_in_one_pass_and_that_is_estimated_faster():
    operator, schedule = TASKS["long_softmax"], walk("long_softmax", "lower r1")
    form = schedule.group("r1").form
    assert form.template == "rows_loop"
    after = apply_action(operator, schedule, parse_phrase(operator, schedule, "one pass r1"))
    device = operator.device
    before_us, after_us = (
        estimate_us(cost_of(operator, s, device), device) for s in (schedule, after)
    )
    assert after_us < before_us
    assert "one pass r1" not in {a.phrase for a in offered("long_softmax", after)}


def test_a_product_of_our_own_can_be_retiled_and_pipelined_but_never_to_what_it_is():
    schedule = walk("linear_gelu_mean", "fuse r2 into r1")
    assert schedule.group("r1").form.template == "matmul"
    actions = offered("linear_gelu_mean", schedule)
    kinds = {action.kind for action in actions}
    assert {"retile", "pipeline"} <= kinds
    operator = TASKS["linear_gelu_mean"]
    for action in actions:
        if action.kind in {"retile", "pipeline"}:
            assert apply_action(operator, schedule, action) != schedule


@pytest.mark.parametrize("name", GRAPHS)
@settings(max_examples=15, deadline=None)
@given(choices=st.lists(st.integers(0, 99), max_size=8))
def test_any_sequence_of_steps_keeps_a_valid_schedule(name, choices):
    operator, graph = TASKS[name], GRAPHS[name]
    initial = {region.id: set(region.nodes) for region in regions_of(graph)}
    schedule = root(graph)
    for choice in choices:
        actions = legal_actions(operator, schedule, operator.device)
        budget = PhraseBudget()
        assert all(budget.take(action.phrase) for action in actions)
        assert len(actions) <= 20
        schedule = apply_action(operator, schedule, actions[choice % len(actions)])
        assert_valid(graph, schedule, initial)
    ast.parse(render(operator, schedule))


def assert_valid(graph, schedule, initial):
    placed = [name for group in schedule.groups for name in group.nodes]
    assert sorted(placed) == sorted(node.name for node in graph.nodes)
    done = {graph_input.name for graph_input in graph.inputs}
    nodes = {node.name: node for node in graph.nodes}
    for group in schedule.groups:
        done.update(group.nodes)
        assert all(read in done for name in group.nodes for read in node_refs(nodes[name]))
    for group in schedule.groups:
        if group.region:
            parts = [r for r, names in initial.items() if names <= set(group.nodes)]
            assert group.region == min(parts, key=lambda r: int(r[1:]))


def test_the_trie_counts_shared_beginnings_once():
    budget = PhraseBudget()
    assert budget.take("retile r1 to 128x128x32")
    assert budget.tokens == 16
    assert budget.take("retile r1 to 128x64x32")
    assert budget.tokens == 16 + 5
    assert MAX_TRIE_TOKENS == 150


def test_a_phrase_that_does_not_fit_leaves_the_budget_as_it_was():
    budget = PhraseBudget(limit=5)
    assert budget.take("lower r1")
    assert not budget.take("pipeline r1 with 4 stages")
    assert budget.take("lower r2")


def test_no_step_is_called_by_what_the_program_already_is():
    schedule = walk("softmax", "lower r1")
    operator = TASKS["softmax"]
    for action in offered("softmax", schedule)[:-1]:
        assert apply_action(operator, schedule, action) != schedule
        assert "1 warps" not in action.phrase


def test_a_judged_step_stays_out_under_its_other_name():
    """Steps that lead to the same program are one step, whatever they are called."""
    results = {}
    operator, schedule = TASKS["linear_gelu_mean"], walk("linear_gelu_mean", "lower r2")
    for action in legal_actions(operator, schedule, operator.device)[:-1]:
        after = msgspec.json.encode(apply_action(operator, schedule, action))
        assert after not in results, (action.phrase, results[after])
        results[after] = action.phrase


def test_phrases_are_short_fixed_english():
    pattern = re.compile(
        r"stop|(lower|library|vectorize|simplify|layout) r\d+|one pass r\d+"
        r"|fuse r\d+ into r\d+|fuse after r\d+"
        r"|retile r\d+ to (\d+x\d+x\d+|[bcis]\d+|1 row|\d+ rows)"
        r"|simplify all|(split|persist|autotune) r\d+|precision r\d+ tf32x3|reorder r\d+ by \d+"
        r"|pipeline r\d+ with (\d+ stages|\d+ warps|1 warp)"
    )
    for name, graph in GRAPHS.items():
        schedule = root(graph)
        for _ in range(4):
            actions = offered(name, schedule)
            assert all(pattern.fullmatch(action.phrase) for action in actions)
            schedule = apply_action(TASKS[name], schedule, actions[0])
