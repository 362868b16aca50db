"""Every key, pressed: what the screen shows, and what the engine (a child process) is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from screenplay import (
    commands_in,
    recorded,
    screen_text,
    scripted,
    settled,
    stage,
    until_question,
)
from textual.pilot import Pilot
from textual.widgets import Input

from mtmc_engine.core.action import Action
from mtmc_engine.core.events import (
    AnyEvent,
    DecisionNeeded,
    Failed,
    Notice,
    PhaseChanged,
    SourceChanged,
    encode,
)
from mtmc_engine.core.options import RunOptions
from mtmc_tui.client import Engine
from mtmc_tui.screen.app import Workbench
from mtmc_tui.screen.dialogs import Ask, Confirm, Page, Pick
from mtmc_tui.screen.keys import BY_ID


@asynccontextmanager
async def session(
    tmp_path: Path, events: list[AnyEvent], size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Workbench, Pilot[int], Path]]:
    """A workbench with an engine of its own that has said `events`."""
    recording, commands = tmp_path / "events.jsonl", tmp_path / "commands.jsonl"
    recording.write_bytes(b"".join(encode(event) + b"\n" for event in events))
    async with stage([], size, scripted(recording, commands)) as (app, pilot):
        await until(lambda: folded_all(app, events))
        await settled(app, pilot)
        yield app, pilot, commands
        assert app.engine is not None
        await app.engine.stop(0.4)


def folded_all(app: Workbench, events: list[AnyEvent]) -> bool:
    snapshot = app.snapshot
    question = next((e for e in reversed(events) if isinstance(e, DecisionNeeded)), None)
    if events and events[-1] is question:
        return snapshot.question == question
    return snapshot.session is not None and (not events or len(snapshot.nodes) > 0)


async def until(done, seconds: float = 10.0) -> None:
    for _ in range(int(seconds / 0.02)):
        if done():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come to pass")


async def sent(path: Path, count: int = 1) -> list[dict]:
    await until(lambda: len(commands_in(path)) >= count)
    return commands_in(path)


ANSWERS = [("a", "approve"), ("r", "reject"), ("g", "retry"), ("s", "skip")]


@pytest.mark.parametrize(("key", "choice"), ANSWERS)
async def test_a_key_answers_the_question_once(tmp_path: Path, key: str, choice: str) -> None:
    async with session(tmp_path, until_question()) as (app, pilot, commands):
        node = app.snapshot.live
        await pilot.press(key, key)
        assert app.snapshot.question is None
        assert (await sent(commands))[0] == {
            "command": "decide", "choice": choice, "node": node, "reason": "", "source": None,
        }  # fmt: skip
        await pilot.pause(0.2)
        choices = [c["choice"] for c in commands_in(commands) if c["command"] == "decide"]
        assert choices[0] == choice
        assert choices.count("approve") + choices.count("reject") + choices.count("retry") <= 1


async def test_reject_with_a_reason(tmp_path: Path) -> None:
    async with session(tmp_path, until_question()) as (app, pilot, commands):
        await pilot.press("R")
        assert isinstance(app.screen, Ask)
        await pilot.press(*"keep a ? q", "enter")
        command = (await sent(commands))[0]
        assert (command["choice"], command["reason"]) == ("reject", "keep a ? q")


async def test_escape_from_a_dialog_sends_nothing(tmp_path: Path) -> None:
    async with session(tmp_path, until_question(2)) as (app, pilot, commands):
        for key in ("R", "h", "x", "A", "S", "y"):
            await pilot.press(key)
            assert app.screen is not app.main
            await pilot.press("escape")
            assert app.screen is app.main
        await pilot.pause(0.1)
        assert commands_in(commands) == []
        assert app.snapshot.question is not None


async def test_approve_all_asks_once(tmp_path: Path) -> None:
    async with session(tmp_path, until_question()) as (app, pilot, commands):
        await pilot.press("A")
        assert isinstance(app.screen, Confirm)
        await pilot.press("y")
        assert await sent(commands) == [{"command": "approve_all"}]


async def test_hint_with_a_level(tmp_path: Path) -> None:
    async with session(tmp_path, until_question()) as (_, pilot, commands):
        await pilot.press("h", "tab", *"reuse x", "enter")
        assert await sent(commands) == [
            {"command": "hint", "text": "reuse x", "level": "data flow"}
        ]


async def test_pause_and_go_on(tmp_path: Path) -> None:
    async with session(tmp_path, until_question()) as (_, pilot, commands):
        await pilot.press("p")
        assert await sent(commands) == [{"command": "pause", "paused": True}]


async def test_stop_asks(tmp_path: Path) -> None:
    async with session(tmp_path, until_question()) as (_, pilot, commands):
        await pilot.press("S", "n", "S", "y")
        assert (await sent(commands))[0]["command"] == "stop"


async def test_export_to_a_folder_and_beside_the_file(tmp_path: Path) -> None:
    async with session(tmp_path, until_question(2)) as (_, pilot, commands):
        await pilot.press("x", *"/tmp/out", "enter")
        await pilot.press("x", "enter")
        folders = [command["folder"] for command in await sent(commands, 2)]
        assert folders == ["/tmp/out", ""]


async def test_export_before_anything_was_kept_asks_and_names_the_default(
    tmp_path: Path,
) -> None:
    async with session(tmp_path, until_question(1)) as (app, pilot, commands):
        assert app.snapshot.best is None
        assert "x export" in screen_text(app)
        await pilot.press("x")
        assert isinstance(app.screen, Ask)
        await settled(app, pilot)
        assert app.snapshot.session is not None
        folder = str(Path(app.snapshot.session.file).parent)
        text = " ".join(screen_text(app).replace("│", " ").split())
        assert "Export the best program, the original, to which folder?" in text
        assert f"Leave it empty for {folder}" in text
        await pilot.press("enter")
        assert await sent(commands) == [{"command": "export", "folder": ""}]


async def test_export_that_is_not_possible_says_why() -> None:
    async with stage(recorded()[:2]) as (app, pilot):
        await pilot.press("x")
        await settled(app, pilot)
        assert not isinstance(app.screen, Ask)
        assert "nothing to export yet" in screen_text(app)


async def test_notices_leave_the_question_in_sight() -> None:
    for size in ((80, 24), (120, 40)):
        async with stage(until_question(), size) as (app, pilot):
            app.say("one\ntwo")
            await settled(app, pilot)
            question = app.main.activity.region.y
            lines = screen_text(app).splitlines()
            assert any("two" in line for line in lines[:question])
            assert lines[question].startswith(" ?  keep")
            assert "? help" in lines[-1]


async def test_skip_ends_a_step_that_is_at_work(tmp_path: Path) -> None:
    events = recorded()
    at = next(n for n, event in enumerate(events) if type(event).__name__ == "GateStarted")
    async with session(tmp_path, events[: at + 1]) as (app, pilot, commands):
        await until(lambda: app.snapshot.live != "")
        await pilot.press("s")
        command = (await sent(commands))[0]
        assert (command["choice"], command["node"]) == ("skip", app.snapshot.live)


async def test_branch_from_another_program(tmp_path: Path) -> None:
    async with session(tmp_path, until_question(2)) as (app, pilot, commands):
        await pilot.press("b")
        await pilot.press("1", "home")
        assert app.main.view.selected == "n0"
        assert "b branch" in screen_text(app)
        await pilot.press("b")
        assert await sent(commands) == [{"command": "branch", "node": "n0"}]
        assert app.main.view.selected == ""


async def test_a_program_is_chosen_by_mouse() -> None:
    async with stage(until_question(2)) as (app, pilot):
        await pilot.click("#pane-1", offset=(8, 1))
        assert app.main.view.selected == "n0"
        assert "4 Proof ─ original" in screen_text(app)


async def test_panes_of_a_narrow_screen_by_mouse() -> None:
    async with stage(until_question(), (80, 24)) as (app, pilot):
        at = screen_text(app).splitlines()[1].index("4 Proof")
        await pilot.click("#tabs", offset=(at, 0))
        assert app.main.view.pane == 4
        await until(lambda: "registers" in screen_text(app))


async def test_an_engine_that_cannot_be_started_is_said() -> None:
    async def start(options: RunOptions) -> Engine:
        raise OSError("no such interpreter")

    async with stage([], start=start) as (app, _):
        assert app.return_value == 1
        assert app.snapshot.failure is not None
        assert "no such interpreter" in app.snapshot.failure.text


async def test_replay_is_offered_when_the_file_changed(tmp_path: Path) -> None:
    events = [*until_question()[:-1], SourceChanged("softmax.py", "1234")]
    async with session(tmp_path, events) as (app, pilot, commands):
        await until(lambda: app.snapshot.stale is not None)
        await settled(app, pilot)
        assert "file changed" in screen_text(app)
        assert "u replay" in screen_text(app)
        await pilot.press("u")
        assert await sent(commands) == [{"command": "replay"}]


async def test_watching_off_keeps_quiet_about_changes() -> None:
    async with stage(until_question()) as (app, pilot):
        await pilot.press("w")
        app.receive(SourceChanged("softmax.py", "1234"))
        await settled(app, pilot)
        assert "not watching" in screen_text(app)
        assert app.snapshot.stale is None


async def test_edit_without_a_terminal_says_so_and_the_question_still_waits() -> None:
    async with stage(until_question()) as (app, pilot):
        await pilot.press("e")
        await pilot.pause(0.1)
        assert any("editor" in notice.message for notice in app._notifications)
        assert app.snapshot.question is not None


async def test_panes_by_number_tab_and_mouse() -> None:
    async with stage(until_question()) as (app, pilot):
        for number in range(1, 6):
            await pilot.press(str(number))
            assert app.focused is app.main.query_one(f"#pane-{number}")
        await pilot.press("tab")
        assert app.main.view.pane == 1
        await pilot.press("shift+tab")
        assert app.main.view.pane == 5
        await pilot.click("#pane-3")
        assert app.main.view.pane == 3


async def test_zoom_and_escape() -> None:
    async with stage(until_question()) as (app, pilot):
        await pilot.press("3", "z")
        text = screen_text(app)
        assert "1 Plan   2 Regions" in text
        assert "keep " in text
        assert not app.main.plan.display or app.main.plan.size.width == 0
        await pilot.press("escape")
        assert "5 Time" in screen_text(app)
        assert not app.main.view.zoomed


async def test_tabs_of_the_code_pane_by_key_and_mouse() -> None:
    async with stage(until_question()) as (app, pilot):
        seen = []
        for _ in range(4):
            seen.append(app.main.view.tab)
            await pilot.press("right_square_bracket")
        assert seen == ["diff", "source", "reference", "ptx"]
        await pilot.press("left_square_bracket")
        assert app.main.view.tab == "ptx"
        assert "No kernel of this program was compiled ahead of time" in screen_text(app)
        title = app.main.query_one("#pane-3").border_title
        assert title is not None
        await pilot.click("#pane-3", offset=(2 + len("3 Code d"), 0))
        assert app.main.view.tab == "diff"


async def test_moving_the_highlight_shows_that_program_and_escape_follows_again() -> None:
    async with stage(until_question()) as (app, pilot):
        live = app.main.plan.highlighted_key
        assert live == app.snapshot.live
        await pilot.press("k")
        assert app.main.view.selected not in ("", live)
        await pilot.press("j")
        assert app.main.view.selected == ""
        await pilot.press("home")
        assert app.main.plan.highlighted_key == "n0"
        await pilot.press("end")
        assert app.main.plan.highlighted_key not in ("n0", live)
        await pilot.press("escape")
        assert app.main.plan.highlighted_key == live


async def test_a_new_question_brings_the_highlight_back() -> None:
    async with stage(until_question()) as (app, pilot):
        await pilot.press("home")
        question = app.snapshot.question
        assert question is not None
        app.receive(question)
        await settled(app, pilot)
        assert app.main.plan.highlighted_key == question.node


async def test_letters_move_text_panes() -> None:
    async with stage(until_question(), (120, 30)) as (app, pilot):
        await pilot.press("3", "right_square_bracket")
        await pilot.press("j", "j", "down")
        assert app.main.code.scroll_offset.y == 3
        await pilot.press("k")
        assert app.main.code.scroll_offset.y == 2
        await pilot.press("end")
        bottom = app.main.code.scroll_offset.y
        assert bottom > 3
        await pilot.press("home")
        assert app.main.code.scroll_offset.y == 0


async def test_hunks() -> None:
    async with stage(until_question(), (100, 24)) as (app, pilot):
        stops = app.main.code._stops
        assert stops
        await pilot.press("3", "end", "N")
        assert app.main.code.scroll_offset.y in stops
        await pilot.press("home", "n")
        assert app.main.code.scroll_offset.y in stops


async def test_side_by_side() -> None:
    async with stage(until_question()) as (app, pilot):
        unified = screen_text(app)
        await pilot.press("d")
        assert app.main.view.split
        assert screen_text(app) != unified
        await pilot.press("d")
        assert screen_text(app) == unified


async def test_filter_narrows_keeps_and_clears() -> None:
    async with stage(until_question()) as (app, pilot):
        before = app.main.plan.option_count
        await pilot.press("slash", *"stop")
        assert isinstance(app.focused, Input)
        assert app.main.plan.option_count < before
        await pilot.press("enter")
        assert app.focused is app.main.plan
        assert "1 Plan /stop" in screen_text(app)
        await pilot.press("escape")
        assert app.main.plan.option_count == before
        await pilot.press("slash", *"zzz", "escape")
        assert app.main.plan.option_count == before
        assert app.focused is app.main.plan


async def test_letters_are_text_in_a_field() -> None:
    async with stage(until_question()) as (app, pilot):
        await pilot.press("slash", *"aqx?")
        assert app.main.filter_field.value == "aqx?"
        assert app.snapshot.question is not None


async def test_help_is_about_the_focused_pane_and_lists_every_key() -> None:
    async with stage(until_question(), (120, 100)) as (app, pilot):
        await pilot.press("5", "question_mark")
        assert isinstance(app.screen, Page)
        text = screen_text(app)
        assert "5 Time" in text
        assert all(name in text for name in BY_ID)
        await pilot.press("question_mark")
        assert app.screen is app.main
        await pilot.press("f1")
        assert isinstance(app.screen, Page)


async def test_the_log_says_where_everything_is() -> None:
    events = [*until_question(), Notice("info", "[not markup] said once")]
    async with stage(events) as (app, pilot):
        await pilot.press("l")
        text = screen_text(app)
        assert app.snapshot.session is not None
        assert app.snapshot.session.journal[:60] in text
        assert "[not markup] said once" in text


async def test_copy_of_diff_kernel_and_command() -> None:
    async with stage(until_question()) as (app, pilot):
        node = app.snapshot.nodes[app.snapshot.live]
        for letter, expected in (
            ("d", node.diff),
            ("k", node.source),
            ("c", "mtmc-tui softmax.py"),
        ):
            await pilot.press("y")
            assert isinstance(app.screen, Pick)
            await pilot.press(letter)
            assert app.screen is app.main
            assert app.clipboard == expected


async def test_options_unfold() -> None:
    events = until_question()
    proposal = next(e for e in reversed(events) if type(e).__name__ == "PlanProposed")
    many = [
        type(proposal.options[0])(Action("retile", f"retile r1 to b{2**n}", "r1"), 0.05)
        for n in range(9)
    ]
    at = events.index(proposal)
    import msgspec

    events[at] = msgspec.structs.replace(proposal, options=(*proposal.options, *many))
    async with stage(events) as (app, pilot):
        assert "more options" in screen_text(app)
        await pilot.press("end", "enter")
        assert "retile r1 to b256" in screen_text(app)
        assert "fewer" in screen_text(app)


async def test_the_palette_has_what_is_possible_now() -> None:
    async with stage(until_question()) as (app, pilot):
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert "step: approve (a)" in titles
        assert "run: replay (u)" not in titles
        await pilot.press("colon")
        assert type(app.screen).__name__ == "CommandPalette"
        await pilot.press("escape")
        await pilot.press("ctrl+p")
        assert type(app.screen).__name__ == "CommandPalette"


async def test_the_footer_can_be_clicked(tmp_path: Path) -> None:
    async with session(tmp_path, until_question()) as (_, pilot, commands):
        await pilot.click("#footer", offset=(3, 0))
        assert (await sent(commands))[0]["choice"] == "approve"


async def test_keys_that_make_no_sense_now_do_nothing(tmp_path: Path) -> None:
    async with session(tmp_path, until_question()[:-1]) as (app, pilot, commands):
        await pilot.press("a", "r", "R", "e", "g", "u")
        assert app.screen is app.main
        await pilot.pause(0.1)
        assert commands_in(commands) == []


async def test_quit_asks_while_running_and_not_after(tmp_path: Path) -> None:
    async with session(tmp_path, until_question()) as (app, pilot, _):
        await pilot.press("q")
        assert isinstance(app.screen, Confirm)
        await pilot.press("n")
        assert app.is_running
        await pilot.press("ctrl+q")
        assert isinstance(app.screen, Confirm)
        await pilot.press("y")
        assert app.return_value == 0
    async with stage(recorded()) as (app, pilot):
        await pilot.press("q")
        assert app.return_value == 0


async def test_a_file_that_cannot_be_opened_ends_the_screen_with_its_code() -> None:
    async with stage([Failed("There is no file x.py: check the path.", 2)]) as (app, _):
        assert app.return_value == 2


async def test_a_later_failure_stays_on_the_screen() -> None:
    async with stage([*until_question(), Failed("The engine ended.", 1, "died")]) as (app, pilot):
        assert "The engine ended." in screen_text(app)
        await pilot.press("q")
        assert app.return_value == 1


async def test_foreign_text_is_no_markup() -> None:
    events = [
        *until_question(),
        Notice("warning", "[/x] [bold]odd"),
        PhaseChanged("code", "[b]x[/"),
    ]
    async with stage(events) as (app, _):
        await until(lambda: "[/x] [bold]odd" in screen_text(app))


async def test_the_title_tells_of_a_question() -> None:
    async with stage(until_question()) as (app, pilot):
        titles: list[str] = []
        app._terminal_title._write = titles.append
        app._terminal_title._text = ""
        app._draw()
        assert "keep" in titles[0]
        app.snapshot = type(app.snapshot)()
        app._draw()
        assert "keep" not in titles[1]
        await pilot.pause()


@pytest.mark.parametrize("size", [(59, 30), (100, 15)])
async def test_a_terminal_that_is_too_small_says_so(size: tuple[int, int]) -> None:
    async with stage(until_question(), size) as (app, pilot):
        text = screen_text(app)
        assert f"mtmc needs 60x16; this is {size[0]}x{size[1]}" in text
        assert "Plan" not in text
        await pilot.resize_terminal(80, 24)
        await pilot.pause(0.2)
        assert "1 Plan" in screen_text(app)


async def test_a_burst_of_events_is_drawn_in_few_refreshes() -> None:
    async with stage(until_question()) as (app, pilot):
        drawn = []
        draw = app.main.draw
        app.main.draw = lambda: (drawn.append(1), draw())[1]  # type: ignore[method-assign]
        for done in range(500):
            app.receive(PhaseChanged("prove", "", done, 500))
        await pilot.pause(0.3)
        assert 1 <= len(drawn) <= 4
