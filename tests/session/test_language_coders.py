"""Repairs, samples, budget and a coder that cannot be asked, in real sessions."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from own_coder import OwnCoder, played

from mtmc_engine.coder.seam import CannotImplement, CoderUnavailable
from mtmc_engine.core.events import (
    BudgetChanged,
    CandidateReady,
    Decide,
    Decided,
    DecisionNeeded,
    GateStarted,
    NodeAdded,
    Notice,
    PromptReady,
    ReplyFinished,
    ReplyPart,
    Send,
    SessionFinished,
    StepStarted,
    VerdictReached,
)
from mtmc_engine.session.journal import Journal

pytestmark = pytest.mark.slow


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


def wrong(source):
    return source.replace("tl.exp(", "1.001 * tl.exp(2.0 * ", 1)


def stored(home):
    (path,) = (home / "journals").glob("*.db")
    return Journal.read(path)


async def test_a_failed_candidate_goes_back_and_all_attempts_stay(monkeypatch, home, operator):
    def write(source, ask):
        if ask.attempt == 1:
            return source.replace("import triton", "import triton_of_old", 1)
        return wrong(source) if ask.attempt == 2 else source + "\n# mended\n"

    coder = OwnCoder(write)
    events, code = await played(monkeypatch, coder, file=str(operator), yes=True, steps=1)
    assert code == 0
    asked = [(ask.attempt, ask.feedback and ask.feedback.repair) for ask in coder.asks]
    assert asked == [(1, None), (2, "fix_compile"), (3, "fix_math")]
    assert "expected" in " ".join(coder.asks[2].feedback.facts)
    started = of(events, StepStarted)
    assert [one.repair for one in started] == ["", "fix_compile", "fix_math"]
    verdicts = [(v.node, v.verdict.verdict.value) for v in of(events, VerdictReached)]
    assert verdicts == [("n1", "IMPORT"), ("n2", "NUMERIC"), ("n3", "UNTIMED")]
    (decided,) = of(events, Decided)
    assert (decided.node, decided.choice) == ("n3", "approve")
    (step,) = events[-1].steps
    assert [(a.node, a.verdict) for a in step.attempts] == verdicts
    assert step.coder == "own"
    journal = stored(home)
    assert "triton_of_old" in journal.program("n1").source
    assert "tl.exp(2.0" in journal.program("n2").source
    assert journal.verdict("n1").verdict == "IMPORT"
    kept = journal.events()
    assert len(of(kept, PromptReady)) == len(of(kept, ReplyFinished)) == 3
    assert of(kept, ReplyPart) == []
    # A prompt, a reply and what it cost are on disk before the next thing begins.
    order = [type(e) for e in kept if isinstance(e, StepStarted | ReplyFinished | CandidateReady)]
    assert order == [StepStarted, ReplyFinished, CandidateReady] * 3


async def test_a_source_judged_bad_is_not_judged_again(monkeypatch, home, operator):
    coder = OwnCoder(lambda source, ask: wrong(source))
    events, _ = await played(monkeypatch, coder, file=str(operator), yes=True, steps=1)
    assert {gate.node for gate in of(events, GateStarted)} == {"n1"}
    assert [v.node for v in of(events, VerdictReached)] == ["n1", "n2", "n3", "n4"]
    assert "very source of attempt 1" in coder.asks[2].feedback.sentence
    (decided,) = of(events, Decided)
    assert decided.choice == "reject"
    assert "same source failed before, as n1" in decided.reason
    assert events[-1].best.is_original
    states = {n.node: n.state for n in of(events, NodeAdded)}
    assert states == {"n0": "kept"} | dict.fromkeys(("n1", "n2", "n3", "n4"), "failed")


async def test_samples_are_all_judged_cheap_gates_first(monkeypatch, home, operator):
    def write(source, ask):
        return [wrong(source), source, source + "\n# as good\n", "def broken(:"][ask.sample]

    monkeypatch.setattr("own_coder.edited", lambda task, program, source: _program(program, source))
    coder = OwnCoder(write)
    events, _ = await played(monkeypatch, coder, file=str(operator), yes=True, steps=1, samples=4)
    assert sorted(ask.sample for ask in coder.asks) == [0, 1, 2, 3]
    ready = {event.sample: event.node for event in of(events, CandidateReady)}
    verdicts = {v.node: v.verdict.verdict.value for v in of(events, VerdictReached)}
    found = {sample: verdicts[node] for sample, node in ready.items()}
    assert found == {0: "NUMERIC", 1: "UNTIMED", 2: "UNTIMED", 3: "SYNTAX"}
    gates = [(gate.gate.value, gate.node) for gate in of(events, GateStarted)]
    values = [at for at, (gate, _) in enumerate(gates) if gate == "launch"]
    compiled = [at for at, (gate, _) in enumerate(gates) if gate in ("parse", "import", "compile")]
    timed = [at for at, (gate, _) in enumerate(gates) if gate == "timing"]
    assert max(compiled) < min(values)
    assert max(values) < min(timed)
    (decided,) = of(events, Decided)
    assert decided.node == ready[1]
    states = {n.node: n.state for n in of(events, NodeAdded)}
    assert states[ready[2]] == "rejected"
    assert states[ready[1]] == "kept"


def _program(program, source):
    from mtmc_engine.core.program import Program

    return Program(source, program.schedule)


async def test_without_its_coder_the_user_is_asked(monkeypatch, home, operator):
    """Each prompt is read before it is sent, also when the user lets the coder try again."""

    def write(source, ask):
        if len(coder.asks) <= 2:
            raise CoderUnavailable("Connection to http://127.0.0.1:9/v1 is refused.")
        return source

    def answer(event):
        if isinstance(event, DecisionNeeded):
            questions.append(event)
            return Decide("retry") if event.about == "coder" else Decide("stop")
        if isinstance(event, PromptReady):
            assert event.waits
            return Send()
        return None

    questions = []
    coder = OwnCoder(write)
    given = {"file": str(operator), "read_prompts": True}
    events, code = await played(monkeypatch, coder, answer, **given)
    assert code == 0
    assert [q.about for q in questions] == ["coder", "coder", "program"]
    assert questions[0].choices == ("retry", "skip", "stop")
    assert "refused" in questions[0].suggestion_reason
    assert [s.attempt for s in of(events, StepStarted)] == [1, 1, 1]


async def test_without_its_coder_a_run_of_the_policy_ends(monkeypatch, home, operator, tmp_path):
    def write(source, ask):
        if ask.step == 1:
            raise CannotImplement("The reply has no code.")
        if ask.step > 2:
            raise CoderUnavailable("Connection to http://127.0.0.1:9/v1 is refused.")
        return source

    coder = OwnCoder(write)
    out = tmp_path / "out"
    events, code = await played(
        monkeypatch, coder, file=str(operator), yes=True, planner="uniform", export=str(out)
    )
    assert code == 1
    last = events[-1]
    assert isinstance(last, SessionFinished)
    assert (last.stopped_by, last.exit_code) == ("coder", 1)
    assert not last.steps[0].approved
    assert last.steps[0].reason == "The reply has no code."
    assert len(last.steps) == 2
    assert [n.level for n in of(events, Notice)][-1] == "error"
    assert last.export == str(out)
    assert of(events, Decided)[-1].step == 2


async def test_a_spent_budget_ends_the_run_and_survives_it(monkeypatch, home, operator):
    coder = OwnCoder(lambda source, ask: source)
    given = {"file": str(operator), "yes": True, "planner": "uniform"}
    events, code = await played(monkeypatch, coder, budget_tokens=120, **given)
    assert code == 0
    assert events[-1].stopped_by == "budget"
    assert len(coder.asks) == 1
    meter = of(events, BudgetChanged)
    assert [(m.tokens, m.cost_usd, m.limit_tokens) for m in meter] == [
        (0, 0.0, 120),
        (120, None, 120),
    ]
    again, code = await played(monkeypatch, coder, budget_tokens=240, resume=True, **given)
    assert again[0].session == events[0].session
    assert of(again, BudgetChanged)[0].tokens == 120
    assert of(again, BudgetChanged)[-1].tokens == 240
    assert again[-1].stopped_by == "budget"
    assert len(again[-1].steps) == 2


async def test_a_budget_of_seconds_ends_a_reply(monkeypatch, home, operator):
    import asyncio

    async def forever():
        await asyncio.sleep(3600)

    coder = OwnCoder(lambda source, ask: forever())
    events, _ = await played(monkeypatch, coder, file=str(operator), yes=True, budget_seconds=2)
    assert events[-1].stopped_by == "budget"
    assert any("2 s is used up" in n.text for n in of(events, Notice))
    assert of(events, Decided) == []
