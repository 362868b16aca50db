"""Help for the focused pane, and the log: pages of text."""

from __future__ import annotations

from textual.content import Content

from mtmc_tui.screen.keymap import GROUPS
from mtmc_tui.screen.keys import KEYS, key_text
from mtmc_tui.screen.model import Node, Snapshot
from mtmc_tui.screen.view import PANES, View, shown_node

NAMES_WIDTH = 13
LONGEST_FACT = 500
ABOUT = {
    1: "The plan tree. Each line is a program: the original, steps that were tried with their "
    "speed against the original, and below the current program what the planner proposes next, "
    "with its probability. Moving the highlight shows that program everywhere; esc goes back to "
    'the run. enter on "more options" unfolds them; b continues from the highlighted program.',
    2: "Regions of the shown program: share of its time, how much of the roofline it reaches and "
    "which roof binds (memory, compute or launch).",
    3: "The code of the shown program. diff compares with the program it came from; reference is "
    "your own file; ptx is what was compiled. [ and ] change tabs, n and N jump between hunks, d "
    "puts old and new side by side. On a proposed action: why, and what the planner read. Where a "
    "language model codes: prompt is all that it is sent, reply what it writes, its thinking dim.",
    4: "Proof of the shown program, gate by gate: what was compiled, run and compared with the "
    "reference in higher precision, the verdict with its reason, and the end of the output where "
    "a gate failed. The whole output is one key away: l.",
    5: "Times. Solid bars are measured, in pairs, with a 95 % interval. Hollow bars with the "
    'sign for "about" are estimates and never measurements. On the line of a baseline stands how '
    "fast the shown program is against it. The memory floor is compulsory bytes over peak "
    "bandwidth; a program that computes much cannot come near it.",
}


def help_text(snapshot: Snapshot, view: View, keymap: dict[str, str], width: int) -> Content:
    """What the focused pane is, then every key; those that are possible now stand out.

    width: cells a line; an id that does not fit beside its text stands below it.
    """
    lines = [
        Content.styled(f"{view.pane} {PANES[view.pane - 1]}", "bold $text-accent"),
        Content(ABOUT[view.pane]),
        Content(""),
    ]
    for group in GROUPS:
        lines.append(Content.styled(group, "bold $text-accent"))
        for key in KEYS:
            if key.group != group:
                continue
            names = " ".join(key_text(name) for name in keymap[key.id].split(","))
            able = key.when(snapshot, view)
            style = "" if able else "$faint"
            name = (f"  {names:<10} ", "bold $footer-key-foreground" if able else style)
            first, *others = _beside(key.help, style, key.id, width - NAMES_WIDTH)
            lines.append(Content.assemble(name, first))
            lines += [" " * NAMES_WIDTH + line for line in others]
        lines.append(Content(""))
    return Content("\n").join(lines)


def _beside(text: str, style: str, key: str, width: int) -> list[Content]:
    """A key's text with its id at the end of the line, or on a line of its own."""
    lines = list(Content.styled(text, style).wrap(max(20, width)))
    if lines[-1].cell_length + 2 + len(key) <= width:
        lines[-1] = Content.assemble(lines[-1], (f"  {key}", "$faint"))
    else:
        lines.append(Content.styled(key, "$faint"))
    return lines


def log_text(snapshot: Snapshot, view: View, engine_log: str) -> Content:
    """Where everything is kept, all notices, and the shown program's gates with their output."""
    lines = [Content.styled("Files", "bold $text-accent")]
    if snapshot.session is not None:
        lines.append(Content(f"  journal     {snapshot.session.journal}"))
    lines += [Content(f"  engine log  {engine_log}"), Content("")]
    lines.append(Content.styled("Notices", "bold $text-accent"))
    lines += [Content(f"  {notice.level}: {notice.text}") for notice in snapshot.notices]
    if snapshot.task is not None:
        lines += [Content(f"  task: {note}") for note in snapshot.task.notes]
    if snapshot.failure is not None:
        lines.append(Content(f"  failed: {snapshot.failure.text}"))
    lines.append(Content(""))
    node = shown_node(snapshot, view)
    if node is not None and node.gates:
        lines += _gates(node)
    return Content("\n").join(lines)


def _gates(node: Node) -> list[Content]:
    name = node.action.phrase if node.action else "original"
    lines = [Content.styled(f"Proof of {name} ({node.id})", "bold $text-accent")]
    for result in node.gates:
        passed = "passed" if result.passed else "failed"
        head = f"  {result.gate.value} {passed}, {result.seconds:.1f} s"
        lines.append(Content(f"{head}: {result.sentence}" if result.sentence else head))
        for key, value in result.evidence.items():
            if key != "ptx":
                lines += _evidence(key, value)
        lines += [Content.styled(f"    {line}", "$quiet") for line in result.log.splitlines()]
    return lines


def _evidence(key: str, value: object) -> list[Content]:
    """One fact of a gate: on one line, or a line for each of several records."""
    name = key.replace("_", " ")
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        texts = [f"{name}: {fact_text(one)}" for one in value]
    else:
        texts = [f"{name}: {fact_text(value)}"]
    return [Content.styled(f"    {text[:LONGEST_FACT]}", "$quiet") for text in texts]


def fact_text(value: object) -> str:
    """A value as it is read: "kernel softmax_kernel, registers 23", "yes", "none"."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        known = [(str(key), one) for key, one in value.items() if one not in (None, "")]
        parts = [f"{key.replace('_', ' ')} {fact_text(one)}" for key, one in known]
    elif isinstance(value, list | tuple):
        nested = any(isinstance(one, dict | list | tuple) for one in value)
        parts = [f"({fact_text(one)})" if nested else fact_text(one) for one in value]
    else:
        parts = [] if value in (None, "") else [str(value)]
    return ", ".join(parts) or "none"
