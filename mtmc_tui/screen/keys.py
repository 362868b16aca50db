"""All keys in one table: it feeds bindings, footer, help, documentation and the keymap check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.keys import format_key

from mtmc_engine.core.events import Choice
from mtmc_tui.screen.model import Snapshot
from mtmc_tui.screen.view import CODE, PLAN, REGIONS, TABS, View, shown_node

FOOTER_KEYS = 7

Possible = Callable[[Snapshot, View], bool]


@dataclass(frozen=True)
class Key:
    """One thing the user can do.

    id:     the contract of user keymaps, such as "step.approve".
    keys:   Textual's key names, comma separated.
    action: the screen's action that it runs.
    label:  one or two words for the footer; `help` is a phrase for help and palette.
    when:   whether it can be done now.
    rank:   place in the footer, lowest first; None keeps it out.
    says_why: pressed where it cannot be done, its action says why not.
    """

    id: str
    keys: str
    action: str
    label: str
    help: str
    group: str
    when: Possible
    rank: int | None = None
    says_why: bool = False

    @property
    def shown(self) -> str:
        """The first key as it is written on a keyboard."""
        return key_text(self.keys.split(",")[0])


WORDED = ("enter", "up", "down", "left", "right", "tab", "backspace", "delete")


def key_text(key: str) -> str:
    """ "question_mark" as "?"; "ctrl+p" and keys without an ASCII sign as they are."""
    if key in WORDED:
        return key
    return "+".join(format_key(part) if len(part) > 1 else part for part in key.split("+"))


def _always(snapshot: Snapshot, view: View) -> bool:
    return True


def _offers(choice: Choice) -> Possible:
    def offered(snapshot: Snapshot, view: View) -> bool:
        return snapshot.question is not None and choice in snapshot.question.choices

    return offered


def _unsent(snapshot: Snapshot, view: View) -> bool:
    return snapshot.unsent is not None


def _can_skip(snapshot: Snapshot, view: View) -> bool:
    at_work = snapshot.pending is not None or bool(snapshot.live) or snapshot.question is not None
    offered = snapshot.question is None or "skip" in snapshot.question.choices
    return snapshot.running and at_work and offered


def _running(snapshot: Snapshot, view: View) -> bool:
    return snapshot.running and snapshot.session is not None


def _has_answer(snapshot: Snapshot, view: View) -> bool:
    return snapshot.best_node in snapshot.nodes and snapshot.failure is None


def _can_branch(snapshot: Snapshot, view: View) -> bool:
    node = shown_node(snapshot, view)
    return (
        snapshot.running
        and node is not None
        and view.selected == node.id
        and node.id != snapshot.at
        and (node.parent is None or (node.verdict is not None and node.verdict.proven))
        and node.id != snapshot.live
    )


def _stale(snapshot: Snapshot, view: View) -> bool:
    return snapshot.stale is not None and snapshot.running


def _has_code(snapshot: Snapshot, view: View) -> bool:
    return shown_node(snapshot, view) is not None


def _on_diff(snapshot: Snapshot, view: View) -> bool:
    node = shown_node(snapshot, view)
    return view.tab == "diff" and node is not None and node.parent is not None


def _opened(snapshot: Snapshot, view: View) -> bool:
    return snapshot.session is not None


def _wide(snapshot: Snapshot, view: View) -> bool:
    return not view.narrow


def _filterable(snapshot: Snapshot, view: View) -> bool:
    return view.pane in (PLAN, REGIONS, CODE)


KEYS: tuple[Key, ...] = (
    Key("step.approve", "a", "decide('approve')", "approve", "approve this step", "Step",
        _offers("approve"), 1),
    Key("prompt.send", "enter", "send_prompt", "send", "send the prompt that waits to be read",
        "Step", _unsent, 0),
    Key("step.approve-all", "A", "approve_all", "approve all",
        "approve all remaining steps by the policy of --yes, asks once", "Step", _running),
    Key("step.reject", "r", "decide('reject')", "reject", "reject this step", "Step",
        _offers("reject"), 2),
    Key("step.reject-reason", "R", "reject_reason", "reject, why",
        "reject with a reason for the planner", "Step", _offers("reject")),
    Key("step.edit", "e", "edit", "edit",
        "edit the candidate in $VISUAL or $EDITOR, then prove it", "Step", _offers("edit"), 3),
    Key("step.retry", "g", "decide('retry')", "again", "let the coder try this step again",
        "Step", _offers("retry"), 4),
    Key("step.skip", "s", "decide('skip')", "skip", "skip this action, take the next", "Step",
        _can_skip, 7),
    Key("step.hint", "h", "hint", "hint",
        "give a hint: algorithm, data flow or low level", "Step", _running, 5),
    Key("plan.branch", "b", "branch", "branch", "continue from the highlighted program", "Plan",
        _can_branch, 0),
    Key("run.pause", "p", "pause", "pause", "pause after the current step, or go on", "Run",
        _running, 8),
    Key("run.stop", "S", "stop", "stop", "stop the run, asks", "Run", _running, 10),
    Key("run.replay", "u", "replay", "replay",
        "replay the approved plan on the changed source", "Run", _stale, 0),
    Key("run.watch", "w", "watch", "watch", "say when the file changes: on, off", "Run", _running),
    Key("run.export", "x", "export", "export", "export the best program with test and benchmark",
        "Run", _has_answer, 6, says_why=True),
    Key("source.open", "o", "open_source", "open", "open the user's file in the editor", "Run",
        _opened, 14),
    Key("copy", "y", "copy", "copy", "copy: diff, kernel, command", "Run", _has_code, 11),
    Key("log", "l", "log", "log", "log: notices, compiler and program output", "Run", _opened, 12),
    *(Key(f"pane.{number}", str(number), f"pane({number})", name.lower(), f"focus {name}", "View",
          _always)
      for number, name in enumerate(("Plan", "Regions", "Code", "Proof", "Time"), 1)),
    Key("pane.next", "tab", "next_pane(1)", "next", "next pane", "View", _always),
    Key("pane.previous", "shift+tab", "next_pane(-1)", "previous", "previous pane", "View",
        _always),
    Key("pane.zoom", "z", "zoom", "zoom", "zoom the pane; esc restores", "View", _wide, 15),
    Key("pane.restore", "escape", "restore", "restore",
        "leave zoom, filter, and a moved highlight", "View", _always),
    Key("tab.previous", "left_square_bracket", "next_tab(-1)", "tab",
        "previous tab: " + ", ".join(TABS), "View", _always),
    Key("tab.next", "right_square_bracket", "next_tab(1)", "tab", "next tab", "View", _always),
    Key("move.down", "j,down", "move('down')", "down", "down", "View", _always),
    Key("move.up", "k,up", "move('up')", "up", "up", "View", _always),
    Key("move.home", "home", "move('home')", "first", "first line", "View", _always),
    Key("move.end", "end", "move('end')", "last", "last line", "View", _always),
    Key("hunk.next", "n", "hunk(1)", "next hunk", "next hunk, or next match of the filter",
        "View", _has_code),
    Key("hunk.previous", "N", "hunk(-1)", "previous hunk",
        "previous hunk, or previous match", "View", _has_code),
    Key("diff.mode", "d", "diff_mode", "side by side", "unified or side-by-side diff", "View",
        _on_diff, 9),
    Key("filter", "slash", "filter", "filter", "filter the pane", "View", _filterable),
    Key("help", "question_mark,f1", "help", "help", "help for this pane", "Help", _always, 90),
    Key("palette", "ctrl+p,colon", "app.command_palette", "palette", "command palette", "Help",
        _always),
    Key("quit", "q,ctrl+q", "quit", "quit", "quit, confirms while running", "Help", _always, 13),
)  # fmt: skip

BY_ID = {key.id: key for key in KEYS}
BY_ACTION = {key.action: key for key in KEYS}


def possible(action: str, snapshot: Snapshot, view: View) -> bool:
    """Whether the table's action can be done now; actions that are not in it always can."""
    key = BY_ACTION.get(action)
    return key is None or key.says_why or key.when(snapshot, view)


def footer_keys(snapshot: Snapshot, view: View) -> list[Key]:
    """At most seven keys, chosen by what is possible now; help is always among them."""
    ranked = sorted((key for key in KEYS if key.rank is not None), key=lambda key: key.rank or 0)
    able = [key for key in ranked if key.when(snapshot, view) and key.id != "help"]
    return [*able[: FOOTER_KEYS - 1], BY_ID["help"]]
