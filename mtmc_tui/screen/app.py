"""The workbench: a client of the engine with a screen of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar, Literal

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.theme import Theme
from textual.worker import Worker, WorkerState

from mtmc_engine.core.events import (
    AnyCommand,
    AnyEvent,
    DecisionNeeded,
    Failed,
    Notice,
    PromptReady,
    SourceChanged,
)
from mtmc_engine.core.options import RunOptions
from mtmc_tui.client import Engine
from mtmc_tui.displays.words import best_text
from mtmc_tui.screen import themes
from mtmc_tui.screen.dialogs import Confirm
from mtmc_tui.screen.glyphs import glyphs
from mtmc_tui.screen.keymap import keymap_faults, usable
from mtmc_tui.screen.keys import KEYS
from mtmc_tui.screen.main import MainScreen
from mtmc_tui.screen.model import Snapshot, apply
from mtmc_tui.screen.render.activity import question_text
from mtmc_tui.screen.settings import Settings, load_settings
from mtmc_tui.screen.title import TerminalTitle

Severity = Literal["information", "warning", "error"]
SEVERITY: dict[str, Severity] = {"warning": "warning", "error": "error"}
REFRESH_S = 0.06
# Options that belong to the command line that repeats a run.
REPEATED = (
    "steps",
    "until",
    "planner",
    "coder",
    "samples",
    "budget_tokens",
    "budget_usd",
    "budget_seconds",
    "read_prompts",
    "target",
    "export",
    "seed",
)
GRACE_S = 0.7


class Workbench(App[int]):
    """Folds the engine's events into a snapshot and draws it at most once in `REFRESH_S`.

    start: starts an engine. clock: seconds; the source of all elapsed times.
    """

    CSS_PATH = "style.tcss"
    TITLE = "mtmc"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", show=False, priority=True)
    ]

    def __init__(
        self,
        options: RunOptions,
        settings: Settings,
        start: Callable[[RunOptions], Awaitable[Engine]] = Engine.start,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._defaults_of: tuple[Theme, dict[str, str]] | None = None
        super().__init__()
        self.options = options
        self.settings = settings
        self.clock = clock
        self._start = start
        self.snapshot = Snapshot()
        self.engine: Engine | None = None
        self.stopping: asyncio.Task[None] | None = None
        self.keys_in_force = usable(settings.keymap)
        self.main = MainScreen(glyphs(settings.ascii))
        self._terminal_title = TerminalTitle(self._write_to_terminal)
        self._draw_due = False
        self._drawn_at = 0.0
        self._theme_faults: list[str] = []
        self._load_themes()
        self._choose_theme()

    @property
    def engine_log(self) -> str:
        """File that holds what the engine and its children wrote to standard error."""
        return str(self.engine.log) if self.engine else ""

    @property
    def command_line(self) -> list[str]:
        """The command that repeats this run."""
        defaults = RunOptions(self.options.file)
        words = ["mtmc-tui", self.options.file]
        for name in REPEATED:
            value = getattr(self.options, name)
            if value != getattr(defaults, name):
                words.append(f"--{name.replace('_', '-')}")
                words += [] if value is True else [str(value)]
        return words

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Values for our own variables, made from the current theme's colours."""
        theme = self.current_theme
        if self._defaults_of is None or self._defaults_of[0] is not theme:
            self._defaults_of = (theme, themes.variable_defaults(theme))
        return self._defaults_of[1]

    def on_mount(self) -> None:
        """Show the screen, then start the engine and follow the user's themes."""
        self.set_keymap(self.keys_in_force)
        self.push_screen(self.main)
        self._report_faults()
        self.run_worker(self._follow_engine(), group="engine", exit_on_error=False)
        self.run_worker(self._follow_themes(), group="themes", exit_on_error=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action of the keys table that is possible now, then the themes."""
        for key in KEYS:
            if key.when(self.snapshot, self.main.view):
                title = f"{key.group.lower()}: {key.label} ({key.shown})"
                yield SystemCommand(title, key.help, self._runner(key.action))
        yield SystemCommand("view: theme", "change the colours", self.action_change_theme)
        yield SystemCommand(
            "view: picture", "save the screen as an SVG file", self.deliver_screenshot
        )

    async def send(self, command: AnyCommand) -> None:
        """Pass a command to the engine."""
        if self.engine is not None:
            await self.engine.send(command)

    async def stop_engine(self) -> None:
        """End the engine and its children within a second."""
        if self.engine is not None:
            await self.engine.stop(grace_s=GRACE_S)

    def say(self, text: str, severity: Severity = "information") -> None:
        """A short notice at the corner. The text is not markup."""
        self.notify(text, severity=severity, markup=False)

    def receive(self, event: AnyEvent) -> None:
        """Fold one event in, and see to it that it is drawn soon."""
        if self.stopping is not None:
            return
        if isinstance(event, SourceChanged) and not self.main.view.watching:
            return
        self.snapshot = apply(self.snapshot, event, self.clock())
        if isinstance(event, Notice) and event.level in SEVERITY:
            self.say(event.text, SEVERITY[event.level])
        self.main.show_talk(event)
        if isinstance(event, PromptReady) and event.waits and self.settings.bell:
            self.bell()
        if isinstance(event, DecisionNeeded):
            self.main.change(selected="")
            if self.settings.bell:
                self.bell()
        if isinstance(event, Failed) and self.snapshot.task is None:
            self.exit(event.exit_code)
            return
        self._draw_soon()

    async def action_quit(self) -> None:
        """Leave; asks while the run goes on."""
        if not self.snapshot.running or self.engine is None:
            self.exit(self._exit_code())
            return
        if isinstance(self.screen, Confirm):
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.stopping = asyncio.create_task(self.stop_engine())
                self.exit(self._exit_code())

        detail = "The session is kept; go on with it any time: the same command with --resume."
        self.push_screen(Confirm("Quit while the run goes on?", detail), answered)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A fault in following the engine is said where failures are said."""
        if event.state is WorkerState.ERROR and event.worker.group == "engine":
            fault = event.worker.error
            text = f"The screen lost the engine ({type(fault).__name__}: {fault})."
            self.receive(Failed(f"{text} Go on with --resume.", 1, "internal"))

    def on_unmount(self) -> None:
        """Leave the terminal's title as it was."""
        self._terminal_title.restore()

    async def _follow_engine(self) -> None:
        self.engine = await self._start(self.options)
        async for event in self.engine.events():
            self.receive(event)
            # A burst must not keep keys waiting.
            await asyncio.sleep(0)

    async def _follow_themes(self) -> None:
        folder = self.settings.themes_folder
        if not folder.is_dir():
            return
        from watchfiles import awatch

        async for _ in awatch(folder, recursive=False, debounce=200):
            self._theme_faults = []
            self._load_themes()
            self._report_theme_faults()
            if self.theme in self.available_themes:
                self._watch_theme(self.theme)

    def _load_themes(self) -> None:
        for folder in (themes.SHIPPED, self.settings.themes_folder):
            loaded = themes.load_folder(folder)
            self._theme_faults += loaded.faults
            for theme in loaded.themes:
                self.register_theme(theme)

    def _choose_theme(self) -> None:
        default = themes.MONOCHROME if self.no_color else themes.DEFAULT
        wanted = self.settings.theme or os.environ.get("TEXTUAL_THEME") or default
        if self.get_theme(wanted) is None:
            self._theme_faults.append(f"there is no theme {wanted}: {default} is used")
            wanted = default
        self.theme = wanted

    def _report_faults(self) -> None:
        faults = [*self.settings.faults, *keymap_faults(self.settings.keymap)]
        if faults:
            self.notify(
                "\n".join(faults), title="screen.toml", severity="warning", timeout=20, markup=False
            )
        self._report_theme_faults()

    def _report_theme_faults(self) -> None:
        if self._theme_faults:
            text = "\n".join(self._theme_faults)
            self.notify(text, title="Themes", severity="warning", timeout=20, markup=False)

    def _draw_soon(self) -> None:
        if self._draw_due:
            return
        self._draw_due = True
        wait = max(0.001, self._drawn_at + REFRESH_S - time.monotonic())
        self.set_timer(wait, self._draw)

    def _draw(self) -> None:
        self._draw_due = False
        self._drawn_at = time.monotonic()
        self.main.draw()
        question = question_text(self.snapshot)
        name = self.snapshot.task.task if self.snapshot.task else "mtmc"
        self._terminal_title.show(f"? {name}: {question}" if question else f"mtmc {name}")

    def _write_to_terminal(self, sequence: str) -> None:
        # Textual has no public way to send a control sequence.
        if self._driver is not None:
            self._driver.write(sequence)

    def _runner(self, action: str) -> Callable[[], None]:
        def run() -> None:
            self.main.call_later(self.main.run_action, action)

        return run

    def _exit_code(self) -> int:
        if self.snapshot.failure is not None:
            return self.snapshot.failure.exit_code
        return self.snapshot.finished.exit_code if self.snapshot.finished else 0


def run_screen(options: RunOptions, theme: str | None = None) -> int:
    """Run the workbench to its end: the exit code.

    theme: name of a theme; None for the user's setting. Raises UsageError for an unknown one.
    """
    settings = load_settings(theme)
    if theme:
        themes.check_name(theme, settings.themes_folder)
    return asyncio.run(run_workbench(Workbench(options, settings)))


async def run_workbench(app: Workbench) -> int:
    """Run it on this terminal: the exit code.

    The terminal is given back before the engine's end is waited for.
    """
    try:
        code = await app.run_async()
    finally:
        await (app.stopping or app.stop_engine())
    for line in _last_words(app.snapshot):
        print(line, file=sys.stderr)
    return code if code is not None else (app.return_code or 0)


def _last_words(snapshot: Snapshot) -> list[str]:
    """What stays in the terminal once the screen is gone."""
    if snapshot.failure is not None:
        return [snapshot.failure.text]
    finished = snapshot.finished
    if finished is None:
        if snapshot.session is None:
            return []
        return [f"Session {snapshot.session.session} is kept: go on with it with --resume."]
    lines = [f"{finished.task}: {best_text(finished.best)}"]
    if finished.export:
        lines.append(f"Exported to {finished.export}")
    return lines
