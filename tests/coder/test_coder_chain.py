"""Chains of coders, and what `--coder` may say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from step_of_two_kernels import action_of, opened, two_kernels

sys.path.insert(0, str(Path(__file__).parents[1] / "planner"))

from mtmc_engine.coder.builtin import BuiltinCoder
from mtmc_engine.coder.chain import ChainCoder
from mtmc_engine.coder.make import make_coder
from mtmc_engine.coder.seam import (
    Candidate,
    CannotImplement,
    CoderAsk,
    CoderUnavailable,
    Feedback,
)
from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import PromptReady
from mtmc_engine.core.verdict import Class, Gate


class Scripted:
    """A coder that answers as it is told: True, a reason, or an exception."""

    def __init__(self, name, *answers, learns=True):
        self.name, self.address, self.learns = name, f"at {name}", learns
        self.answers, self.asked, self.closed = list(answers), 0, False

    async def implement(self, task, program, action, ask):
        self.asked += 1
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        return Candidate(program, ("done",), self.name, 0.0)

    async def close(self):
        self.closed = True


async def step(chain, feedback=None):
    return await chain.implement(None, None, Action("fuse", "fuse r2 into r1"), CoderAsk(feedback))


def failed(coder):
    return Feedback("fix_math", Gate.VALUES, Class.NUMERIC, "wrong", "source", coder=coder)


async def test_the_next_is_asked_when_the_first_cannot():
    chain = ChainCoder([Scripted("a", CannotImplement("No.")), Scripted("b")])
    made = await step(chain)
    assert made.coder == "b"
    assert made.notes == ("a: No.", "done")
    assert (chain.name, chain.address, chain.learns) == ("a,b", "at a, at b", True)


async def test_a_failed_candidate_goes_back_to_its_coder_if_that_learns():
    a, b = Scripted("a"), Scripted("b")
    assert (await step(ChainCoder([a, b]), failed("b"))).coder == "b"
    assert (await step(ChainCoder([a, b]), failed("a"))).coder == "a"


async def test_a_failed_candidate_of_one_that_does_not_learn_goes_to_the_next():
    a, b = Scripted("builtin", learns=False), Scripted("b")
    assert (await step(ChainCoder([a, b]), failed("builtin"))).coder == "b"
    with pytest.raises(CannotImplement, match="another answer") as failure:
        await step(ChainCoder([b, a]), failed("builtin"))
    assert not isinstance(failure.value, CoderUnavailable)


@pytest.mark.case(35)
async def test_unreachable_coders_are_given_up_after_two_steps():
    a = Scripted("a", *[CoderUnavailable("Refused.")] * 5)
    chain = ChainCoder([a, Scripted("b")])
    for _ in range(4):
        assert (await step(chain)).coder == "b"
    assert a.asked == 2


async def test_all_unreachable_is_unavailable_and_a_mixture_is_not():
    gone = [CoderUnavailable("Refused.")] * 3
    with pytest.raises(CoderUnavailable, match=r"a: Refused\. b: Refused\."):
        await step(ChainCoder([Scripted("a", *gone), Scripted("b", *gone)]))
    with pytest.raises(CannotImplement) as failure:
        await step(ChainCoder([Scripted("a", *gone), Scripted("b", CannotImplement("No."))]))
    assert not isinstance(failure.value, CoderUnavailable)


async def test_closing_closes_all():
    coders = [Scripted("a"), Scripted("b")]
    await ChainCoder(coders).close()
    assert all(coder.closed for coder in coders)


def test_coders_by_name(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert isinstance(make_coder("builtin"), BuiltinCoder)
    coder = make_coder("builtin, openai:some-model@http://127.0.0.1:9/v1")
    assert isinstance(coder, ChainCoder)
    assert coder.name == "builtin,openai:some-model"
    assert coder.address == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("bultin", "did you mean 'builtin'"),
        ("opnai:gpt", "did you mean 'openai'"),
        ("lama:x.gguf", "did you mean 'llama'"),
        ("", "empty link"),
        ("builtin,", "empty link"),
        ("builtin,,openai:m@http://localhost", "empty link"),
        ("openai", "openai:MODEL"),
        ("openai:", "openai:MODEL"),
        ("openai:@http://localhost:1", "Name the model"),
        ("openai:m@example.org/v1", "https://"),
        ("llama", "llama:FILE.gguf"),
        ("llama:", "llama:FILE.gguf"),
        ("llama:/nowhere/x.gguf", "does not exist"),
        ("builtin:fast", "write 'builtin'"),
        ("builtin,builtin", "twice"),
        ("builtin,openai:m", "OPENAI_API_KEY"),
    ],
)
def test_what_is_no_coder_is_said_in_one_sentence(spec, said, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError) as refusal:
        make_coder(spec)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    pytest.importorskip("llama_cpp")
    pytest.importorskip("gguf")
    import tiny_model

    return tiny_model.write(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.mark.case(22)
async def test_a_prompt_beyond_the_context_is_refused_before_the_call(tmp_path, tiny):
    """Case 22: the model holds 768 tokens, the shortest prompt has more."""
    operator = opened(tmp_path)
    program = two_kernels(operator)
    coder = make_coder(f"llama:{tiny}")
    events = []
    try:
        with pytest.raises(CannotImplement, match="longer context"):
            await coder.implement(
                operator,
                program,
                action_of(operator, program, "retile r1 to b2048"),
                CoderAsk(tell=events.append),
            )
    finally:
        await coder.close()
    assert not [event for event in events if isinstance(event, PromptReady)]
