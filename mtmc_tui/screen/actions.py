"""What the keys ask of the engine: decisions on a step, and commands to the run."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textual.app import SuspendNotSupported
from textual.screen import Screen

from mtmc_engine.core.events import (
    ApproveAll,
    Branch,
    Choice,
    Decide,
    Export,
    Hint,
    Pause,
    Replay,
    Send,
    Stop,
)
from mtmc_tui.screen.dialogs import Ask, Confirm, Page, Pick, page_width
from mtmc_tui.screen.editor import edit_file, edit_text, editor_command
from mtmc_tui.screen.exporting import export_session
from mtmc_tui.screen.keymap import merged
from mtmc_tui.screen.keys import BY_ID
from mtmc_tui.screen.model import ORIGINAL, Snapshot
from mtmc_tui.screen.render.help import help_text, log_text
from mtmc_tui.screen.view import PANES, View, shown_node

if TYPE_CHECKING:
    from mtmc_tui.screen.app import Workbench

Edited = TypeVar("Edited")

HINT_LEVELS = ("algorithm", "data flow", "low level")
COPIES = (
    ("diff", "diff of the shown program against the one it came from"),
    ("kernel", "source of the shown program"),
    ("command", "command line of this run"),
)


class EngineActions(Screen[None]):
    """The half of the main screen that talks to the engine."""

    app: Workbench
    view: View

    @property
    def snapshot(self) -> Snapshot:
        """The engine's side of the screen."""
        return self.app.snapshot

    def change(self, **changes: object) -> None:
        """Look elsewhere: replace fields of the view and draw."""
        raise NotImplementedError

    async def action_decide(self, choice: Choice) -> None:
        """Approve, reject, skip or retry the step that waits; skip also ends one at work."""
        if choice == "skip" and self.snapshot.question is None:
            await self.app.send(Decide("skip", self.snapshot.live))
        else:
            await self._answer(choice)

    def action_reject_reason(self) -> None:
        """Reject, and tell the planner why."""

        async def answered(given: tuple[str, str] | None) -> None:
            if given is not None:
                await self._answer("reject", reason=given[1])

        ask = Ask("Reject: why?", "the planner reads this, such as: keep the library matmul")
        self.app.push_screen(ask, answered)

    async def action_send_prompt(self) -> None:
        """Send the prompts that wait to be read."""
        if self.snapshot.unsent is not None:
            self.app.snapshot = replace(self.snapshot, unsent=None)
            self.change()
            await self.app.send(Send())

    async def action_edit(self) -> None:
        """Edit the candidate in the user's editor; what changed is proven next."""
        question = self.snapshot.question
        node = self.snapshot.nodes.get(question.node) if question else None
        if node is None:
            return
        edited = self._in_editor(lambda: edit_text(node.source, f"{node.id}.py"))
        if edited is None:
            return
        if edited == node.source:
            self.app.say("nothing was changed: the question still waits")
            return
        await self._answer("edit", source=edited)

    def action_approve_all(self) -> None:
        """Let the policy of --yes decide from here on."""

        async def answered(yes: bool | None) -> None:
            if yes:
                await self.app.send(ApproveAll())

        detail = "What is proven faster is kept, enabling steps stay open for three more."
        self.app.push_screen(Confirm("Approve all remaining steps by policy?", detail), answered)

    def action_hint(self) -> None:
        """Give planner and coder a hint."""

        async def answered(given: tuple[str, str] | None) -> None:
            if given is not None and given[1]:
                await self.app.send(Hint(given[1], given[0]))
                self.app.say(f"hint given: {given[1]}")

        ask = Ask("A hint for planner and coder", "such as: one pass over the row", HINT_LEVELS)
        self.app.push_screen(ask, answered)

    async def action_branch(self) -> None:
        """Continue from the highlighted program."""
        node = shown_node(self.snapshot, self.view)
        if node is not None:
            self.change(selected="")
            await self.app.send(Branch(node.id))

    async def action_pause(self) -> None:
        """Pause after the current step, or go on."""
        await self.app.send(Pause(not self.snapshot.paused))

    def action_stop(self) -> None:
        """Stop the run; the best proven program is the answer."""

        async def answered(yes: bool | None) -> None:
            if yes:
                await self.app.send(Stop("stopped by the user"))

        detail = "The best proven program so far becomes the answer."
        self.app.push_screen(Confirm("Stop the run?", detail), answered)

    async def action_replay(self) -> None:
        """Apply the approved plan to the changed source."""
        await self.app.send(Replay())

    def action_watch(self) -> None:
        """Say when the file changes, or keep quiet about it."""
        self.change(watching=not self.view.watching)

    def action_export(self) -> None:
        """Export the best program into a folder that is asked for, or say why there is none."""
        session = self.snapshot.session
        if session is None or not BY_ID["run.export"].when(self.snapshot, self.view):
            self.app.say(_no_export(self.snapshot), "warning")
            return
        beside = Path(session.file).absolute()

        async def answered(given: tuple[str, str] | None) -> None:
            if given is not None:
                await self._export(str(Path(given[1]).expanduser().absolute()) if given[1] else "")

        best = "the original" if self.snapshot.best_node == ORIGINAL else self.snapshot.best_node
        ask = Ask(
            f"Export the best program, {best}, to which folder?",
            f"empty: {beside.parent}",
            detail=f"Leave it empty for {beside.parent}, beside {beside.name}.",
        )
        self.app.push_screen(ask, answered)

    async def _export(self, folder: str) -> None:
        """By the running engine, or from the journal where it has finished."""
        if self.snapshot.running:
            await self.app.send(Export(folder))
            return
        assert self.snapshot.session is not None
        target = folder or str(Path(self.snapshot.session.file).parent)
        trouble = await export_session(self.snapshot.session.session, target)
        if trouble:
            self.app.say(trouble, severity="error")
        else:
            self.app.say(f"exported to {target}")

    def action_open_source(self) -> None:
        """Open the user's file in the user's editor."""
        assert self.snapshot.session is not None
        path = Path(self.snapshot.session.file)
        self._in_editor(lambda: edit_file(path))

    def action_copy(self) -> None:
        """Copy the diff, the kernel or the command to the clipboard."""

        def picked(key: str | None) -> None:
            if key is not None:
                text = self._copied(key)
                self.app.copy_to_clipboard(text)
                self.app.say(f"{key} copied, {len(text.splitlines())} lines")

        self.app.push_screen(Pick("Copy", COPIES), picked)

    def action_log(self) -> None:
        """Everything that was said, and where it is kept."""
        text = log_text(self.snapshot, self.view, self.app.engine_log)
        self.app.push_screen(Page("Log", text))

    def action_help(self) -> None:
        """What the focused pane is, and every key."""
        keys = merged(self.app.keys_in_force)
        text = help_text(self.snapshot, self.view, keys, page_width(self.app.size.width))
        self.app.push_screen(Page(f"Help {self.view.glyphs.dot} {PANES[self.view.pane - 1]}", text))

    async def action_quit(self) -> None:
        """Leave; asks while the run goes on."""
        await self.app.action_quit()

    async def _answer(self, choice: Choice, reason: str = "", source: str | None = None) -> None:
        question = self.snapshot.question
        if question is None:
            return
        # Taken off the screen at once, so that a key pressed twice answers one question.
        self.app.snapshot = replace(self.snapshot, question=None)
        self.change(selected="")
        await self.app.send(Decide(choice, question.node, reason, source))

    def _copied(self, key: str) -> str:
        node = shown_node(self.snapshot, self.view)
        if key == "command":
            return shlex.join(self.app.command_line)
        if node is None:
            return ""
        return node.diff if key == "diff" else node.source

    def _in_editor(self, work: Callable[[], Edited]) -> Edited | None:
        """What `work` returns once the terminal is its own; None, with a notice, if it failed."""
        trouble: Exception | None = None
        result: Edited | None = None
        try:
            with self.app.suspend():
                # An exception must not pass through suspend: it would not resume.
                try:
                    result = work()
                except (OSError, subprocess.CalledProcessError, UnicodeDecodeError) as error:
                    trouble = error
        except SuspendNotSupported as error:
            trouble = error
        if trouble is not None:
            editor = shlex.join(editor_command())
            self.app.say(f"the editor ({editor}) did not end well: {trouble}", "warning")
        return result


def _no_export(snapshot: Snapshot) -> str:
    """Why nothing can be exported."""
    if snapshot.failure is not None:
        return "nothing to export: the run has failed"
    return "nothing to export yet: the file is still being captured"
