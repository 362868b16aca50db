"""On a real terminal: first paint, key to paint under a burst, quitting, edits; then in tmux."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from screenplay import HERE, commands_in, until_question
from terminal import Terminal

from mtmc_engine.core.events import encode

FIRST_PAINT_S = 1.0
KEY_TO_PAINT_S = 0.05
QUIT_S = 1.0
HEAVY = ("torch", "triton", "numpy", "openai", "llama_cpp", "watchfiles")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(encode(event) + b"\n" for event in until_question()))
    return path


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    root = str(HERE.parents[1])
    return {
        **os.environ, "MTMC_HOME": str(tmp_path), "TERM": "xterm-256color", "PYTHONPATH": root,
        "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", **more,
    }  # fmt: skip


def start(
    terminals: list[Terminal], tmp_path: Path, recording: Path, *flags: str, **more: str
) -> Terminal:
    command = [sys.executable, str(HERE / "launch.py"), str(recording)]
    commands = str(tmp_path / "commands.jsonl")
    terminal = Terminal([*command, commands, *flags], (120, 40), environment(tmp_path, **more))
    terminals.append(terminal)
    return terminal


def test_first_paint(terminals: list[Terminal], tmp_path: Path, recording: Path) -> None:
    times = []
    for _ in range(3):
        terminal = start(terminals, tmp_path, recording)
        took = terminal.seconds_until("1 Plan", terminal.started)
        times.append(took - (terminal.seconds_in_queue() - terminal.queued_before))
        terminal.close()
        terminals.remove(terminal)
    assert min(times) < FIRST_PAINT_S, times


def test_key_to_paint_while_the_engine_works(
    terminals: list[Terminal], tmp_path: Path, recording: Path
) -> None:
    terminal = start(terminals, tmp_path, recording, "--burst", "20")
    terminal.seconds_until("/1000", terminal.started)
    times = []
    for key, text in (("]", "source"), ("[", "diff"), ("?", "esc closes"), ("?", "2 Regions")) * 3:
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            terminal.read(0.01)
        times.append(terminal.seconds_of_its_own(key, text))
    assert sorted(times)[len(times) // 2] < KEY_TO_PAINT_S, times


@pytest.mark.parametrize("flags", [(), ("--stubborn",)])
def test_quitting_ends_everything(
    terminals: list[Terminal], tmp_path: Path, recording: Path, flags: tuple[str, ...]
) -> None:
    terminal = start(terminals, tmp_path, recording, *flags)
    terminal.seconds_until("approve", terminal.started)
    assert len(children(terminal.process.pid)) == 1
    engine = children(terminal.process.pid)[0]
    terminal.press("q")
    terminal.seconds_until("Quit while the run goes on?", time.monotonic())
    terminal.press("y")
    assert terminal.seconds_until_end() < QUIT_S
    assert terminal.process.returncode == 0
    assert not Path(f"/proc/{engine}").exists()
    assert b"\x1b[?1049l" in terminal.output
    assert b"is kept: go on with it with --resume." in terminal.output


def test_edit_in_the_users_editor(
    terminals: list[Terminal], tmp_path: Path, recording: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "# edited by hand" >> "$1"\n')
    editor.chmod(0o755)
    terminal = start(terminals, tmp_path, recording, VISUAL=str(editor))
    terminal.seconds_until("approve", terminal.started)
    terminal.press("e")
    end = time.monotonic() + 10
    while not commands_in(tmp_path / "commands.jsonl") and time.monotonic() < end:
        terminal.read(0.02)
    command = commands_in(tmp_path / "commands.jsonl")[0]
    assert command["choice"] == "edit"
    assert command["source"].endswith("# edited by hand\n")


def test_an_editor_that_fails_leaves_the_question(
    terminals: list[Terminal], tmp_path: Path, recording: Path
) -> None:
    terminal = start(terminals, tmp_path, recording, EDITOR="/nonexistent/editor")
    terminal.seconds_until("approve", terminal.started)
    terminal.press("e")
    terminal.seconds_until("the editor (", time.monotonic())
    assert commands_in(tmp_path / "commands.jsonl") == []


def test_the_title_asks_and_the_bell_rings_if_wanted(
    terminals: list[Terminal], tmp_path: Path, recording: Path
) -> None:
    terminal = start(terminals, tmp_path, recording, MTMC_BELL="1")
    terminal.seconds_until("approve", terminal.started)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        terminal.read(0.02)
    assert b"\x1b]2;? rms_norm: keep " in terminal.output
    assert b"\x07" in terminal.output.replace(b"?\x07", b"")


def test_the_interface_process_loads_nothing_heavy() -> None:
    code = (
        "import sys, mtmc_tui.cli, mtmc_tui.screen.app as app\n"
        "from mtmc_tui.screen.settings import load_settings\n"
        "from mtmc_engine.core.options import RunOptions\n"
        "app.Workbench(RunOptions('x.py'), load_settings())\n"
        "print(*sys.modules, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {name.split(".")[0] for name in done.stdout.split()} & set(HEAVY)


def children(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(folder.name))
    return found
