"""Help for the focused pane, and the log: pages of text."""

from __future__ import annotations

from textual.content import Content

from mtmc_tui.screen.keymap import GROUPS
from mtmc_tui.screen.keys import KEYS, key_text
from mtmc_tui.screen.model import Node, Snapshot
from mtmc_tui.screen.view import PANES, View, shown_node

ABOUT = {
    1: "The plan tree. Each line is a program: the original, steps that were tried with their "
    "speed against the original, and below the current program what the planner proposes next, "
    "with its probability. Moving the highlight shows that program everywhere; esc goes back to "
    "the run. enter on “more options” unfolds them; b continues from the highlighted program.",
    2: "Regions of the shown program: share of its time, how much of the roofline it reaches and "
    "which roof binds (memory, compute or launch).",
    3: "The code of the shown program. diff compares with the program it came from; reference is "
    "your own file; ptx is what was compiled. [ and ] change tabs, n and N jump between hunks, d "
    "puts old and new side by side. On a proposed action: why, and what the planner read.",
    4: "Proof of the shown program, gate by gate: what was compiled, run and compared with the "
    "reference in higher precision, the verdict with its reason, and the end of the output where "
    "a gate failed. The whole output is one key away: l.",
    5: "Times. Solid bars are measured, in pairs, with a 95 % interval. Hollow bars with the "
    "sign for “about” are estimates and never measurements. The floor is compulsory bytes over "
    "peak bandwidth.",
}


def help_text(snapshot: Snapshot, view: View, keymap: dict[str, str]) -> Content:
    """What the focused pane is, then every key; those that are possible now stand out."""
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
            lines.append(
                Content.assemble(
                    (f"  {names:<10} ", "bold $footer-key-foreground" if able else style),
                    (key.help, style),
                    (f"  {key.id}", "$faint"),
                )
            )
        lines.append(Content(""))
    return Content("\n").join(lines)


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
        lines += [
            Content.styled(f"    {key}: {str(value)[:500]}", "$quiet")
            for key, value in result.evidence.items()
            if key != "ptx"
        ]
        lines += [Content.styled(f"    {line}", "$quiet") for line in result.log.splitlines()]
    return lines
