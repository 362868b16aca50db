"""Everything the screen says in plain ASCII, and without colour: in the panes of models as well."""

from __future__ import annotations

import pytest
from screenplay import NOWHERE, folded, recorded, screen_text, settled, stage, until_question

from mtmc_engine.core.chat import Message, Usage
from mtmc_engine.core.events import (
    BudgetChanged,
    CoderWaits,
    GateFinished,
    PhaseChanged,
    PromptReady,
    ReplyFinished,
    ReplyPart,
    StepStarted,
)
from mtmc_engine.core.verdict import Gate, GateResult
from mtmc_tui.screen.glyphs import ASCII, UNICODE
from mtmc_tui.screen.keymap import merged
from mtmc_tui.screen.model import Snapshot, apply
from mtmc_tui.screen.render.activity import activity_text
from mtmc_tui.screen.render.code import code_text, code_title
from mtmc_tui.screen.render.help import help_text, log_text
from mtmc_tui.screen.render.plan import plan_line, plan_rows
from mtmc_tui.screen.render.proof import proof_lines
from mtmc_tui.screen.render.regions import region_line, region_rows
from mtmc_tui.screen.render.status import status_line, tab_strip
from mtmc_tui.screen.render.time import time_lines, time_title
from mtmc_tui.screen.settings import Settings
from mtmc_tui.screen.view import PANES, TABS, View

PROMPT = PromptReady(2, 1, 0, "llama", "localhost", (Message("user", "write it"),), 120, waits=True)
PTX = "// softmax_kernel num_warps=4\n.visible .entry softmax_kernel()\n{\n\tret;\n}"


def asking() -> list:
    """The recording, then a step in which a language model is asked."""
    events = until_question()
    action = events[-1].action
    used = Usage(120, 40, estimated=True)
    return [
        *events,
        GateFinished(events[-1].node, GateResult(Gate.COMPILE, True, 1.0, code={"ptx": PTX})),
        StepStarted(2, "n0", action, 0.5),
        PROMPT,
        ReplyPart(2, 1, 0, "hm", thinking=True),
        ReplyPart(2, 1, 0, "x = 1"),
        ReplyFinished(2, 1, 0, "x = 1", "stop", used, 2.0, None, "code"),
        BudgetChanged(160, None, 2.0, limit_tokens=1000, limit_usd=1.0, limit_seconds=60.0),
        PhaseChanged("code", "lower r1", 3, 8, 50.0),
    ]


def moments() -> dict[str, Snapshot]:
    waiting = apply(folded(asking()), CoderWaits("llama", "it is busy", 9.0, 2), 50.0)
    unsent = apply(folded(asking()), PROMPT, 50.0)
    return {
        "nothing": Snapshot(),
        "question": folded(until_question()),
        "coding": folded(asking()),
        "waiting": waiting,
        "unsent": unsent,
        "finished": folded(recorded()),
    }


def everything(snapshot: Snapshot, view: View, width: int) -> dict[str, str]:
    """The text of every pane and line, by name."""
    signs = view.glyphs
    said = {
        "plan": [plan_line(row, width, signs) for row in plan_rows(snapshot, view)],
        "regions": [region_line(row, width, signs) for row in region_rows(snapshot, view)],
        "code": code_text(snapshot, view, width).lines,
        "proof": proof_lines(snapshot, view, width),
        "time": time_lines(snapshot, view, width),
        "lines": [
            code_title(snapshot, view, width),
            status_line(snapshot, view, width),
            tab_strip(view),
            activity_text(snapshot, view, width, 60.0),
            help_text(snapshot, view, merged({}), width),
            log_text(snapshot, view, "engine.log"),
        ],
    }
    texts = {name: "\n".join(line.plain for line in lines) for name, lines in said.items()}
    return {**texts, "title": time_title(snapshot, view)}


@pytest.mark.parametrize("moment", moments())
def test_ascii_is_ascii(moment: str) -> None:
    snapshot = moments()[moment]
    for tab in TABS:
        for pane in range(1, len(PANES) + 1):
            view = View(glyphs=ASCII, tab=tab, pane=pane, split=pane == 3)
            for name, text in everything(snapshot, view, 70).items():
                strange = {char for char in text if not char.isascii()}
                assert not strange, (moment, tab, name, strange)


def test_the_compiled_code_is_shown_and_jumped_through() -> None:
    snapshot = folded(asking()[:-6])
    shown = code_text(snapshot, View(tab="ptx", selected=until_question()[-1].node), 60)
    assert [line.plain for line in shown.lines][1] == ".visible .entry softmax_kernel()"
    assert shown.stops == (0,)


def test_the_compiled_code_outlives_the_verdict() -> None:
    """A session that goes on tells of it after the node, whose gates then stay as they were."""
    events = until_question()
    node = events[-1].node
    gates = folded(events).nodes[node].gates
    told = GateFinished(node, GateResult(Gate.COMPILE, True, 1.0, code={"ptx": PTX}))
    after = apply(folded(events), told, 90.0).nodes[node]
    assert after.ptx == PTX
    assert after.gates == gates


@pytest.mark.parametrize("signs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_states_have_words_beside_their_colours(signs) -> None:
    """Without colour a waiting coder, a waiting prompt and its outcome are still told apart."""
    view = View(glyphs=signs, tab="reply")
    seen = moments()
    assert "the coder waits" in activity_text(seen["waiting"], view, 90, 52.0).plain
    assert "0:0" in activity_text(seen["waiting"], view, 90, 52.0).plain
    assert "send this prompt?" in activity_text(seen["unsent"], view, 90, 52.0).plain
    assert "left of the budget" in activity_text(seen["coding"], view, 200, 60.0).plain
    reply = "\n".join(line.plain for line in code_text(seen["coding"], view, 70).lines)
    assert "code" in reply
    assert "stop" in reply


async def test_no_color_draws_every_tab_without_colour(monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    settings = Settings(NOWHERE, ascii=True)
    async with stage(asking(), settings=settings) as (app, pilot):
        assert app.no_color
        for tab in TABS:
            app.main.change(tab=tab)
            await settled(app, pilot)
            text = screen_text(app)
            assert text.isascii(), {char for char in text if not char.isascii()}
            colours = {
                colour.name
                for strip in app.screen._compositor.render_strips()
                for segment in strip
                if segment.style
                for colour in (segment.style.color, segment.style.bgcolor)
                if colour is not None
                and colour.triplet is not None
                and len(set(colour.triplet)) > 1
            }
            assert not colours, (tab, colours)
