"""A workbench fed from the recording, and its screen as text."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from mtmc_engine.core.events import AnyEvent, DecisionNeeded, decode_event
from mtmc_engine.core.options import RunOptions
from mtmc_tui.client import LONGEST_LINE, Engine
from mtmc_tui.screen.app import Workbench
from mtmc_tui.screen.model import Snapshot, apply
from mtmc_tui.screen.settings import Settings

HERE = Path(__file__).parent
RECORDING = HERE / "events.jsonl"
NOWHERE = Path("/nonexistent")


def recorded() -> list[AnyEvent]:
    """The recorded session, to its end."""
    return [decode_event(line) for line in RECORDING.read_bytes().splitlines()]


def until_question(number: int = 1) -> list[AnyEvent]:
    """The recording up to and with the question of that number."""
    events = recorded()
    questions = [at for at, event in enumerate(events) if isinstance(event, DecisionNeeded)]
    return events[: questions[number - 1] + 1]


def folded(events: list[AnyEvent], seconds: float = 0.5) -> Snapshot:
    """The snapshot after these events, which come so many seconds apart."""
    snapshot = Snapshot()
    for number, event in enumerate(events):
        snapshot = apply(snapshot, event, number * seconds)
    return snapshot


def screen_text(app: Workbench) -> str:
    """What the terminal shows, line by line, without the blanks at the ends."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


async def no_engine(options: RunOptions) -> Engine:
    """Never comes up."""
    return await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def stage(
    events: list[AnyEvent],
    size: tuple[int, int] = (120, 40),
    start: Callable[[RunOptions], Awaitable[Engine]] = no_engine,
    settings: Settings | None = None,
) -> AsyncIterator[tuple[Workbench, Pilot[int]]]:
    """A workbench that has seen `events`; its clock stands still at half a second an event."""
    now = [0.0]
    app = Workbench(
        RunOptions("softmax.py"), settings or Settings(NOWHERE), start=start, clock=lambda: now[0]
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        for event in events:
            app.receive(event)
            now[0] += 0.5
        await settled(app, pilot)
        yield app, pilot


async def settled(app: Workbench, pilot: Pilot[int]) -> None:
    """All that was asked for is drawn, however busy the machine is."""
    for _ in range(2):
        await pilot.pause()
        app.main.draw()
    await pilot.pause()


def scripted(
    recording: Path, commands: Path, *more: str
) -> Callable[[RunOptions], Awaitable[Engine]]:
    """Starts the scripted engine as a child process."""

    async def start(options: RunOptions) -> Engine:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(HERE / "scripted_engine.py"),
            str(recording),
            str(commands),
            *more,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            start_new_session=True,
        )
        return Engine(process, commands.with_suffix(".log"))

    return start


def commands_in(path: Path) -> list[dict]:
    """What the scripted engine was asked for."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]
