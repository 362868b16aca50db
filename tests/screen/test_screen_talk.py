"""Prompts, replies, waits and the meter on the screen."""

from __future__ import annotations

from screenplay import screen_text, settled, stage, until_question
from textual.content import Content

from mtmc_engine.core.action import Action
from mtmc_engine.core.chat import Message, Usage
from mtmc_engine.core.events import (
    BudgetChanged,
    CandidateReady,
    CoderWaits,
    DecisionNeeded,
    NodeAdded,
    PromptReady,
    ReplyFinished,
    ReplyPart,
    StepStarted,
    TaskOpened,
)
from mtmc_tui.screen.glyphs import UNICODE
from mtmc_tui.screen.model import Snapshot, apply
from mtmc_tui.screen.render.activity import activity_text
from mtmc_tui.screen.render.talk import meter_text, prompt_lines, reply_lines
from mtmc_tui.screen.render.words import count_text
from mtmc_tui.screen.view import View, tabs_of

LOWER = Action("lower", "lower r1", "r1")
TASK = TaskOpened("t", "Model", ("4x8",), ("float32",), "H200", False, True, (), "x")
MESSAGES = (Message("system", "You edit one program."), Message("user", "lower r1\nnow"))


def prompt(sample: int = 0, attempt: int = 1, waits: bool = False) -> PromptReady:
    return PromptReady(1, attempt, sample, "openai:m", "http://h/v1", MESSAGES, 2310, waits)


def finished(outcome: str = "code", sample: int = 0) -> ReplyFinished:
    return ReplyFinished(1, 1, sample, "text", "stop", Usage(2310, 812, 2048), 3.0, 0.012, outcome)


BEGUN = (TASK, NodeAdded("n0", None, None, "kept", "s", "d"), StepStarted(1, "n0", LOWER, 0.8))


def after(*events) -> Snapshot:
    snapshot = Snapshot()
    for number, event in enumerate((*BEGUN, *events)):
        snapshot = apply(snapshot, event, float(number))
    return snapshot


def texts(lines: list[Content]) -> list[str]:
    return [line.plain.rstrip() for line in lines]


def test_a_reply_that_broke_off_stays_and_the_next_try_is_another() -> None:
    lost = ReplyFinished(
        1, 1, 0, "half", "", Usage(2310, 2, estimated=True), 3.0, 0.0, "broken off: reset"
    )
    snapshot = after(
        prompt(),
        ReplyPart(1, 1, 0, "half"),
        lost,
        CoderWaits("openai:m", "reset", 1.0, 3),
        ReplyPart(1, 1, 0, "whole"),
        finished(),
    )
    first, second = snapshot.talks[(1, 1, 0)]
    assert (first.reply, [text for text, _ in first.parts]) == (lost, ["half"])
    assert (second.reply.outcome, [text for text, _ in second.parts]) == ("code", ["whole"])
    said = "\n".join(texts(reply_lines(snapshot, View(), 90)[0]))
    assert "✗ broken off: reset" in said
    assert "2 out counted here" in said
    assert "✓ code" in said


def test_the_whole_prompt_is_shown_and_its_messages_are_stops() -> None:
    lines, stops = prompt_lines(after(prompt()), View(), 70)
    said = texts(lines)
    assert "openai:m" in said[0]
    assert "http://h/v1" in said[0]
    assert [said[at].split()[1] for at in stops] == ["system", "user"]
    assert said[-2:] == ["lower r1", "now"]


def test_thinking_is_dim_and_apart_from_the_answer() -> None:
    snapshot = after(
        prompt(),
        ReplyPart(1, 1, 0, "hm, ", True),
        ReplyPart(1, 1, 0, "rows", True),
        ReplyPart(1, 1, 0, "import torch", False),
    )
    lines, _ = reply_lines(snapshot, View(), 70)
    assert texts(lines)[:2] == ["hm, rows", "import torch"]
    assert "$quiet" in str(lines[0].spans[0].style)
    assert not lines[1].spans
    assert "writing" in texts(lines)[2]


def test_a_reply_that_broke_off_is_void() -> None:
    begun = (prompt(), ReplyPart(1, 1, 0, "half of", False))
    snapshot = after(*begun, CoderWaits("openai:m", "the connection was reset", 4.0, 2))
    assert "half of" not in " ".join(texts(reply_lines(snapshot, View(), 70)[0]))
    text = activity_text(snapshot, View(), 80, 7.5).plain
    assert snapshot.phase is None or "the coder waits" in text


def test_a_wait_counts_down_until_the_next_word() -> None:
    from mtmc_engine.core.events import PhaseChanged

    waiting = after(PhaseChanged("code"), prompt(), CoderWaits("openai:m", "HTTP 429", 12.0, 3))
    began = waiting.wait_at
    assert "0:12" in activity_text(waiting, View(), 80, began).plain
    assert "0:05" in activity_text(waiting, View(), 80, began + 7.0).plain
    assert "3 tries left" in activity_text(waiting, View(), 80, began).plain
    assert apply(waiting, ReplyPart(1, 1, 0, "a", False), 99.0).wait is None


def test_samples_are_told_apart_and_each_candidate_keeps_its_step() -> None:
    snapshot = after(
        prompt(0),
        prompt(1),
        finished(sample=1),
        finished("The answer holds no code.", sample=0),
        CandidateReady("n1", "n0", "a", "", "openai:m", 1.0, 1, 1),
        CandidateReady("n2", "n0", "b", "", "openai:m", 1.0, 1, 2),
    )
    said = texts(reply_lines(snapshot, View(), 70)[0])
    assert [line.split("─ ")[-1].split(" ─")[0] for line in said if "sample" in line] == [
        "sample 1",
        "sample 2",
    ]
    assert any("The answer holds no code." in line for line in said)
    assert snapshot.nodes["n2"].action == LOWER
    assert (snapshot.nodes["n2"].attempt, snapshot.nodes["n2"].sample) == (1, 2)


def test_a_highlighted_attempt_shows_its_own_prompt() -> None:
    snapshot = after(
        prompt(),
        finished(),
        CandidateReady("n1", "n0", "a", "", "openai:m", 1.0, 1),
        StepStarted(1, "n0", LOWER, 0.8, 2, "fix_math"),
        prompt(attempt=2),
    )
    assert "attempt 2" in texts(prompt_lines(snapshot, View(), 70)[0])[0]
    assert "attempt 1" in texts(prompt_lines(snapshot, View(selected="n1"), 70)[0])[0]


def test_tabs_of_a_language_model_are_there_only_with_one() -> None:
    assert "prompt" not in tabs_of(after())
    assert tabs_of(after(prompt()))[-2:] == ("prompt", "reply")


def test_the_meter_says_limits_and_what_is_unknown() -> None:
    used = BudgetChanged(12_345, 0.04, 42.0)
    assert meter_text(used, UNICODE, roomy=True) == "12.3k tok $0.04"
    assert meter_text(used, UNICODE, roomy=False) == "12.3k tok"
    assert meter_text(BudgetChanged(100, None, 1.0), UNICODE, roomy=True) == "100 tok $?"
    limited = BudgetChanged(100, 0.5, 1.0, 50_000, 1.0, 300.0)
    assert meter_text(limited, UNICODE, roomy=False) == "100/50k tok $0.50/$1 0:01/5:00"
    assert [count_text(n) for n in (0, 999, 1000, 99_950, 1_250_000)] == [
        "0",
        "999",
        "1k",
        "100k",
        "1.2M",
    ]


def test_a_coder_that_cannot_be_asked_is_a_question_of_its_own() -> None:
    asks = DecisionNeeded(
        "n0", 1, LOWER, ("retry", "skip", "stop"), "It is refused.", about="coder"
    )
    snapshot = after(asks)
    text = activity_text(snapshot, View(), 100, 9.0).plain
    assert "the coder cannot be asked for lower r1" in text
    assert "It is refused." in text
    assert not snapshot.waiting(snapshot.nodes["n0"])


async def test_enter_sends_the_prompt_from_any_pane() -> None:
    events = [*until_question()[:-1], prompt(waits=True)]
    for pane in ("1", "3"):
        async with stage(events, (100, 30)) as (app, pilot):
            await settled(app, pilot)
            assert "send this prompt?" in screen_text(app)
            assert "You edit one program." in screen_text(app)
            await pilot.press(pane)
            await pilot.press("enter")
            await settled(app, pilot)
            assert app.snapshot.unsent is None
            assert "send this prompt?" not in screen_text(app)
