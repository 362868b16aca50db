"""Whole sessions with a language model behind a real HTTP server that replays a script.

MTMC_PICTURES=FOLDER keeps pictures of the screen at its moments.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "replay_server"))
sys.path.insert(0, str(Path(__file__).parents[1] / "screen"))

from exported import exported_test
from picture import self_contained
from replay_server import ReplayServer
from screenplay import screen_text

from mtmc_engine.core.events import (
    BudgetChanged,
    CandidateReady,
    CoderWaits,
    Decide,
    Decided,
    DecisionNeeded,
    GateStarted,
    Hint,
    PromptReady,
    ReplyFinished,
    ReplyPart,
    SessionFinished,
    SessionStarted,
    StepStarted,
    Stop,
    VerdictReached,
)
from mtmc_engine.core.options import RunOptions
from mtmc_engine.session.journal import Journal
from mtmc_tui.client import Engine
from mtmc_tui.screen.app import Workbench
from mtmc_tui.screen.settings import Settings

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
OPERATOR = HERE / "gated_softmax.py"
PICTURES = os.environ.get("MTMC_PICTURES")
NOWHERE = Path("/nonexistent")


@pytest.fixture
def server():
    with ReplayServer(HERE / "script.toml") as server:
        yield server


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MTMC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path / "home"


def options(server, **more) -> RunOptions:
    given = {
        "planner": "roofline",
        "coder": f"openai:replay@{server.base_url}",
        "timings": str(HERE / "timings.json"),
        "watch": False,
        **more,
    }
    return RunOptions(str(OPERATOR), **given)


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


def stored(home) -> list:
    (path,) = (home / "journals").glob("*.db")
    journal = Journal.read(path)
    events = journal.events()
    journal.close()
    return events


class Seen:
    """The workbench at its moments: until something is there, and what it looks like then."""

    def __init__(self, app, pilot) -> None:
        self.app, self.pilot = app, pilot

    async def until(self, what, patience_s: float = 120.0) -> str:
        """The screen once `what(snapshot)` holds."""
        for _ in range(int(patience_s / 0.02)):
            assert self.app.snapshot.failure is None, self.app.snapshot.failure
            if what(self.app.snapshot):
                await self.pilot.pause(0.15)
                return screen_text(self.app)
            await self.pilot.pause(0.02)
        raise AssertionError(f"it never came; the screen is\n{screen_text(self.app)}")

    def picture(self, name: str) -> None:
        if PICTURES:
            svg = self_contained(self.app.export_screenshot(title="mtmc-tui"))
            Path(PICTURES, f"{name}.svg").write_text(svg)


# The small screen is walked through where pictures are wanted: it takes a minute.
@pytest.mark.parametrize("size", [(120, 40), (80, 24)] if PICTURES else [(120, 40)])
async def test_a_session_on_the_screen(server, home, tmp_path, size):
    """Prompts are read and sent, a wrong kernel is repaired, a rate limit waited for; exported."""
    out = tmp_path / "out"
    given = options(server, read_prompts=True, steps=2, export=str(out))
    app = Workbench(given, Settings(NOWHERE))
    name = f"{size[0]}x{size[1]}"
    async with app.run_test(size=size) as pilot:
        seen = Seen(app, pilot)
        text = await seen.until(lambda s: s.unsent is not None)
        assert "send this prompt?" in text
        assert "enter send" in text
        assert "gives" in text or "system" in text
        seen.picture(f"prompt-{name}")
        assert server.chats == []
        await pilot.press("enter")
        text = await seen.until(lambda s: any(e[-1].parts for e in s.talks.values()))
        assert "pointwise operators" in text
        seen.picture(f"reply-{name}")
        # The first kernel is wrong: the repair's prompt waits.
        text = await seen.until(lambda s: s.unsent is not None and s.unsent.attempt == 2)
        assert [n.verdict.verdict for n in app.snapshot.nodes.values() if n.verdict] == ["NUMERIC"]
        seen.picture(f"repair-{name}")
        await pilot.press("enter")
        text = await seen.until(lambda s: s.question is not None)
        assert "keep lower r3?" in text
        await pilot.press("1")
        await pilot.pause(0.2)
        assert "(attempt 2)" in screen_text(app)
        seen.picture(f"attempts-{name}")
        await pilot.press("a")
        # The rate limit of the second step.
        await seen.until(lambda s: s.unsent is not None and s.unsent.step == 2)
        await pilot.press("enter")
        text = await seen.until(lambda s: s.wait is not None)
        assert "the coder waits" in text
        assert "HTTP 429" in text
        seen.picture(f"waits-{name}")
        # Prose without code: the model is asked once more, and that prompt waits too.
        await seen.until(lambda s: s.unsent is not None and len(s.talks[(2, 1, 0)]) == 2)
        await pilot.press("enter")
        text = await seen.until(lambda s: s.question is not None)
        assert "keep fuse r2 into r1?" in text
        assert "tok" in text.splitlines()[0]
        seen.picture(f"second-{name}")
        await pilot.press("a")
        await seen.until(lambda s: s.finished is not None)
        seen.picture(f"finished-{name}")
        finished = app.snapshot.finished
    assert finished.best.actions == ("lower r3", "fuse r2 into r1")
    assert finished.best.ratio_to_original > 2.4
    assert [a.verdict for a in finished.steps[0].attempts] == ["NUMERIC", "FASTER"]
    events = stored(home)
    assert [v.verdict.verdict.value for v in of(events, VerdictReached)] == [
        "NUMERIC",
        "FASTER",
        "FASTER",
    ]
    assert [r.outcome == "code" for r in of(events, ReplyFinished)] == [True, True, False, True]
    assert of(events, ReplyPart) == of(events, CoderWaits) == []
    assert len(server.chats) == 5
    report = (out / "report.html").read_text()
    assert "openai:replay" in report
    assert "NUMERIC" in report
    assert "replayed from timings.json" in (out / "gated_softmax_mtmc.py").read_text()
    if not PICTURES:
        own_test = await asyncio.to_thread(exported_test, out)
        assert own_test.returncode == 0, own_test.stdout


async def test_killed_in_the_middle_of_a_repair(server, home):
    """What was judged is not judged again, and what was spent stays counted."""
    for reply in server.script.reply:
        reply.times = 2
    engine = await Engine.start(options(server, yes=True, steps=1))
    before = []
    async for event in engine.events():
        before.append(event)
        if isinstance(event, ReplyPart) and event.attempt == 2:
            break
    engine.kill()
    await engine.wait()
    assert [v.node for v in of(before, VerdictReached)] == ["n1"]
    spent = of(before, BudgetChanged)[-1].tokens
    assert spent == 3730

    engine = await Engine.start(options(server, yes=True, steps=1, resume=True))
    after = [event async for event in engine.events()]
    await engine.wait()
    assert of(after, SessionStarted)[0].session == of(before, SessionStarted)[0].session
    assert of(after, BudgetChanged)[0].tokens == spent
    assert [(s.step, s.attempt, s.repair) for s in of(after, StepStarted)] == [(1, 2, "fix_math")]
    assert "What the judge found" in of(after, PromptReady)[0].messages[-1].content
    assert {gate.node for gate in of(after, GateStarted)} == {"n2"}
    (decided,) = of(after, Decided)
    assert (decided.node, decided.choice) == ("n2", "approve")
    last = after[-1]
    assert isinstance(last, SessionFinished)
    assert [a.verdict for a in last.steps[0].attempts] == ["NUMERIC", "FASTER"]
    assert of(after, BudgetChanged)[-1].tokens == spent + 4950


async def test_a_reply_that_is_skipped_counts_and_a_hint_reaches_the_next_prompt(server, home):
    slow = {"text": "Let me think about it. " * 400, "pause_s": 0.1, "times": 0}
    server.play({"reply": [slow]})
    engine = await Engine.start(options(server, steps=2))
    hint = "One program per row, eight warps."
    events, skipped, stopped = [], False, False
    async for event in engine.events():
        events.append(event)
        if isinstance(event, ReplyPart) and not skipped:
            skipped = True
            await engine.send(Hint(hint))
            await engine.send(Decide("skip"))
        if isinstance(event, ReplyPart) and event.step == 2 and not stopped:
            stopped = True
            await engine.send(Stop())
    assert await engine.wait() == 0
    first, second = of(events, PromptReady)
    assert hint not in str(first.messages)
    assert hint in second.messages[-1].content
    for kept in (of(events, ReplyFinished), of(stored(home), ReplyFinished)):
        assert [(reply.step, reply.outcome) for reply in kept] == [
            (1, "cancelled"),
            (2, "cancelled"),
        ]
        assert all(reply.usage.estimated and reply.usage.completion for reply in kept)
        assert all(slow["text"].startswith(reply.text) for reply in kept)
    used = sum(r.usage.prompt + r.usage.completion for r in of(events, ReplyFinished))
    assert of(stored(home), BudgetChanged)[-1].tokens == used
    assert [d.choice for d in of(events, Decided)] == ["skip"]
    assert events[-1].best.reason == "No step helped."


async def test_a_rate_limit_beyond_what_is_waited_for_is_a_question(server, home):
    limited = {"status": 429, "error": "Slow down", "retry_after": "3600"}
    server.play({"reply": [limited, {"text": "I cannot.", "times": 0}]})
    engine = await Engine.start(options(server, steps=1))
    events = []
    async for event in engine.events():
        events.append(event)
        if isinstance(event, DecisionNeeded):
            await engine.send(
                Decide(event.choices[0] if len(of(events, DecisionNeeded)) == 1 else "skip")
            )
    assert await engine.wait() == 0
    question = of(events, DecisionNeeded)[0]
    assert (question.about, question.choices) == ("coder", ("retry", "skip", "stop"))
    assert "HTTP 429" in question.suggestion_reason
    assert of(events, CoderWaits) == []
    assert len(server.chats) == 1 + 4
    assert of(events, BudgetChanged)[-1].tokens > 0


async def test_an_endpoint_that_is_not_there(home, tmp_path):
    """Bounded retries with a countdown, then a clear end; nothing is kept (case 35)."""
    given = RunOptions(
        str(OPERATOR),
        yes=True,
        planner="roofline",
        coder="openai:replay@http://127.0.0.1:9/v1",
        watch=False,
    )
    engine = await Engine.start(given)
    events = [event async for event in engine.events()]
    assert await engine.wait() == 1
    waits = of(events, CoderWaits)
    assert [wait.tries_left for wait in waits] == [3, 2, 1]
    last = events[-1]
    assert (last.stopped_by, last.exit_code, last.best.is_original) == ("coder", 1, True)
    assert of(events, CandidateReady) == of(events, Decided) == of(events, DecisionNeeded) == []


async def test_the_next_coder_of_a_chain_takes_over(home):
    given = RunOptions(
        str(OPERATOR),
        yes=True,
        steps=1,
        planner="roofline",
        coder="openai:replay@http://127.0.0.1:9/v1,builtin",
        watch=False,
    )
    engine = await Engine.start(given)
    events = [event async for event in engine.events()]
    assert await engine.wait() == 0
    assert of(events, CandidateReady)[0].coder == "builtin"
    assert [d.choice for d in of(events, Decided)] == ["approve"]
