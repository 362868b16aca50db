"""The state text: pure, stable in front, within its budget, ending where a phrase continues."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from msgspec.structs import replace
from plan_tasks import linear_relu_softmax

from mtmc_engine.plan.state import GroupView, Observation, PastStep, State, observe
from mtmc_engine.plan.state_text import (
    CHANGING_TOKENS,
    STATE_TEXT_VERSION,
    state_text,
    text_of,
    token_bound,
)
from mtmc_engine.schedule.cost import cost_of, estimate_us
from mtmc_engine.schedule.regions import root
from mtmc_engine.system.model_file import bundled

VERSION_1_CHANGING = """\
Step 1 of 8. {time}us, floor 7.9us
r1 linear torch {linear}% time, {matmul}% compute
r2 relu torch {relu}% time, {copy}% memory
r3 softmax torch {softmax}% time, {rows}% memory
Next step:"""


@pytest.fixture(scope="module")
def state() -> State:
    task = linear_relu_softmax()
    schedule = root(task.graph)
    costs = cost_of(task, schedule, task.device)
    return State(task, schedule, costs, estimate_us(costs, task.device))


@pytest.fixture(scope="module")
def tokens():
    """Counts tokens as the bundled model does."""
    llama_cpp = pytest.importorskip("llama_cpp")
    if bundled() is None:
        pytest.skip("the bundled model is not installed")
    model = llama_cpp.Llama(str(bundled()), vocab_only=True, verbose=False)
    return lambda text: len(model.tokenize(text.encode(), add_bos=False))


def test_the_changing_part_of_version_1(state):
    linear, relu, softmax = state.costs
    expected = VERSION_1_CHANGING.format(
        time=round(state.time_us),
        linear=round(linear.share * 100),
        relu=round(relu.share * 100),
        softmax=round(softmax.share * 100),
        matmul=round(linear.of_peak * 100),
        copy=round(relu.of_peak * 100),
        rows=round(softmax.of_peak * 100),
    )
    shown = dict.fromkeys(state_text(state).changing.splitlines())
    assert STATE_TEXT_VERSION == 1
    assert set(shown) == set(expected.splitlines())
    assert list(shown)[-1] == "Next step:"


def test_the_prefix_names_device_task_and_operators(state):
    prefix = state_text(state).prefix
    assert "GPU: H200, 132 SMs, 4800 GB/s" in prefix
    assert "Task: block of float32 4096x1024." in prefix
    assert "r1 linear: float32 4096x1024, " in prefix
    assert "8.6GFLOP" in prefix
    assert prefix.endswith("\n")


def test_the_prefix_stays_while_the_program_changes(state):
    later = replace(
        state,
        step=5,
        time_us=70.0,
        costs=state.costs[:1],
        history=(PastStep("lower r1", "FASTER", 1.4),),
    )
    assert state_text(later).prefix == state_text(state).prefix
    assert state_text(later).changing != state_text(state).changing


def test_a_hint_lengthens_the_prefix_at_its_end(state):
    hinted = replace(state, hints=("fuse the\nsoftmax " + "very " * 99,))
    prefix = state_text(hinted).prefix
    assert prefix.startswith(state_text(state).prefix)
    assert "Hint: fuse the softmax very" in prefix
    assert len(prefix) < len(state_text(state).prefix) + 140


def test_the_compact_state_is_all_that_the_text_reads(state):
    past = replace(state, history=(PastStep("lower r1", "SLOWER", 0.9, kept=False),), hints=("x",))
    stored = msgspec.json.encode(observe(past))
    assert text_of(msgspec.json.decode(stored, type=Observation)) == state_text(past)


OPERATORS = [
    "linear", "softmax", "layer_norm", "native_batch_norm", "scaled_dot_product_attention",
    "cross_entropy", "max_pool2d", "conv2d", "gelu", "silu", "logsumexp", "cumsum", "embedding",
    "rsqrt", "pow", "index_select", "masked_fill", "upsample_nearest2d", "argmax", "var_mean",
    "bmm", "addmm", "sigmoid", "where", "rms_norm", "group_norm", "gather", "topk",
]  # fmt: skip
PHRASES = [
    "retile r12 to 128x256x64", "fuse r12 into r11", "fuse_epilogue r12 into r11",
    "pipeline r12 with 4 stages", "one_pass r12", "vectorize r12 by 8", "library r12",
]  # fmt: skip


def crowded(state: State, seed: int) -> Observation:
    """A state of many regions with long names, large numbers and a long history."""
    pairs = list(itertools.combinations(OPERATORS, 2))
    groups = tuple(
        GroupView(
            region=f"r{number + 10}",
            label="+".join(pairs[(seed * 31 + number * 17) % len(pairs)]),
            form=("torch", "rows_loop", "pointwise", "matmul", "by hand")[(seed + number) % 5],
            share=0.99 - number / 50,
            of_peak=0.01 * (seed % 100),
            bound=("memory", "compute", "launch")[seed % 3],
        )
        for number in range(30)
    )
    history = tuple(
        PastStep(PHRASES[(seed + at) % 7], "ILLEGAL_ACCESS", None if at % 2 else 12.34, at % 3 == 0)
        for at in range(12)
    )
    seen = observe(state)
    return replace(
        seen, groups=groups, history=history, step=12, max_steps=16, time_us=123456.0 + seed
    )


def test_the_budget_holds_with_the_real_tokenizer(state, tokens):
    for seed in range(200):
        changing = text_of(crowded(state, seed)).changing
        assert tokens(changing) <= CHANGING_TOKENS, changing


def test_the_budget_is_used(state, tokens):
    counts = [tokens(text_of(crowded(state, seed)).changing) for seed in range(50)]
    assert min(counts) > CHANGING_TOKENS * 0.65


def test_what_is_left_out_is_the_cheapest_and_the_oldest(state):
    seen = crowded(state, 3)
    lines = text_of(seen).changing.splitlines()
    shown = [line.split()[0] for line in lines if line.startswith("r1")]
    assert shown == [group.region for group in seen.groups[: len(shown)]]
    assert shown
    assert lines[-2].startswith(seen.history[-1].phrase)


def test_the_bound_holds_for_our_words(tokens):
    for text in [*OPERATORS, *PHRASES, "Step 3 of 8. 183us, floor 7.9us\n", "12.3ms\n"]:
        assert tokens(" " + text) <= token_bound(" " + text), text
