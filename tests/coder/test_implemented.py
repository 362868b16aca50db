"""A reply's source: groups it leaves stay as they are, those it touches are by hand."""

from __future__ import annotations

import pytest
from step_of_two_kernels import action_of, opened, retiled, two_kernels

from mtmc_engine.coder.llm.implemented import implemented
from mtmc_engine.core.action import Action
from mtmc_engine.core.program import ByHand, Library, Program, Templated
from mtmc_engine.schedule.legal import apply_action, legal_actions, parse_phrase
from mtmc_engine.schedule.render import render


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    return opened(tmp_path_factory.mktemp("op"))


@pytest.fixture(scope="module")
def program(operator):
    return two_kernels(operator)


def forms(program):
    return {g.region: type(g.form) for g in program.schedule.groups if g.region}


def test_a_change_of_one_kernel_makes_it_by_hand_and_no_other(operator, program):
    action = action_of(operator, program, "retile r1 to b2048")
    found = implemented(operator, program, action, retiled(program))
    assert found.source == retiled(program)
    assert forms(found) == {"r1": ByHand, "r2": Library, "r3": Templated}
    assert "2048" in found.schedule.group("r1").form.source
    assert "gelu" not in found.schedule.group("r1").form.source


def test_later_steps_on_other_groups_keep_the_code(operator, program):
    action = action_of(operator, program, "retile r1 to b2048")
    found = implemented(operator, program, action, retiled(program))
    step = parse_phrase(operator, found.schedule, "library r3")
    later = render(operator, apply_action(operator, found.schedule, step))
    assert found.schedule.group("r1").form.source.strip() in later


LINEAR_GELU = """
@triton.jit
def linear_gelu_kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, inner, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    total = tl.load(b_ptr + cols, mask=cols < n_cols)
    tl.store(out_ptr + row * n_cols + cols, total, mask=cols < n_cols)


def linear_gelu(x, w, b):
    out = torch.empty((x.shape[0], w.shape[0]), dtype=x.dtype, device=x.device)
    linear_gelu_kernel[(x.shape[0],)](x, w, b, out, w.shape[0], w.shape[1], BLOCK=64)
    return out


class ModelNew"""


def fused(program, call):
    """The program with linear and gelu in one launcher, called by `call`."""
    head, _, _ = program.source.partition("@triton.jit\ndef gelu_kernel")
    _, _, entry = program.source.partition("class ModelNew")
    start = entry.index("        linear_1")
    return head + LINEAR_GELU.lstrip("\n") + entry[:start] + call


@pytest.mark.parametrize(
    "call",
    [
        "        return (linear_gelu(relu_0, self.w1, self.b1),)\n",
        "        out = linear_gelu(relu_0, self.w1, self.b1)\n        return (out,)\n",
        "        weight = self.w1\n        return (linear_gelu(relu_0, weight, self.b1),)\n",
    ],
)
def test_a_fusion_that_calls_as_a_rendered_one_is_told_apart(operator, program, call):
    source = fused(program, call)
    action = action_of(operator, program, "fuse r3 into r2")
    found = implemented(operator, program, action, source)
    assert found.source == source
    assert forms(found) == {"r1": Templated, "r2": ByHand}
    assert found.schedule.group("r2").form.source.startswith("@triton.jit\ndef linear_gelu_kernel")
    rendered = render(operator, found.schedule)
    assert "linear_gelu(relu_0, self.w1, self.b1)" in rendered


@pytest.mark.parametrize(
    "call",
    [
        "        return (linear_gelu(relu_0, self.b1, self.w1),)\n",
        "        return (linear_gelu(x, self.w1, self.b1),)\n",
        "        return (2 * linear_gelu(relu_0, self.w1, self.b1),)\n",
        "        self.seen = x\n        return (linear_gelu(relu_0, self.w1, self.b1),)\n",
        "        if x.numel() > 9:\n            return (linear_gelu(relu_0, self.w1, self.b1),)\n"
        "        return (relu_0,)\n",
        "        return (linear_gelu(relu(relu_0), self.w1, self.b1),)\n",
    ],
)
def test_a_call_that_a_rendered_entry_would_not_make_puts_all_by_hand(operator, program, call):
    source = fused(program, call)
    found = implemented(operator, program, action_of(operator, program, "fuse r3 into r2"), source)
    assert {g.form for g in found.schedule.groups if g.region} == {ByHand(source)}
    assert {g.region for g in found.schedule.groups if g.region} == {"r1", "r2"}
    assert render(operator, found.schedule) == source


def test_packed_weights_put_all_by_hand(operator, program):
    source = program.source.replace("new.__dict__", "new.packed = 1\n        new.__dict__", 1)
    action = action_of(operator, program, "retile r1 to b2048")
    found = implemented(operator, program, action, source)
    assert {g.form for g in found.schedule.groups if g.region} == {ByHand(source)}


def test_a_step_that_is_not_in_the_list_leaves_the_regions(operator, program):
    action = Action("layout", "layout r1", "r1")
    found = implemented(operator, program, action, retiled(program))
    assert forms(found) == {"r1": ByHand, "r2": Library, "r3": Templated}


def test_a_chain_of_doublings_is_read_at_once(operator, program):
    lines = "".join(f"        a{n} = a{n - 1} + a{n - 1}\n" for n in range(1, 200))
    source = fused(program, f"        a0 = relu_0\n{lines}        return (a199,)\n")
    action = action_of(operator, program, "fuse r3 into r2")
    assert implemented(operator, program, action, source).source == source


def test_source_that_is_too_deep_to_compare_is_all_by_hand(operator, program):
    deep = "+".join(["1"] * 3000)
    source = program.source.replace("def relu(", f"DEEP = {deep}\n\n\ndef relu(", 1)
    action = action_of(operator, program, "retile r1 to b2048")
    found = implemented(operator, program, action, source)
    assert found.source == source


def test_a_programs_own_rewriting_still_has_steps(operator, program):
    action = action_of(operator, program, "retile r1 to b2048")
    found = implemented(operator, program, action, retiled(program))
    assert isinstance(found, Program)
    phrases = {a.phrase for a in legal_actions(operator, found.schedule, operator.device)}
    assert "library r1" in phrases
