"""The code pane: diff against the parent, source, reference and PTX, as styled lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from textual.content import Content

from mtmc_engine.core.verdict import Gate
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import Node, Snapshot
from mtmc_tui.screen.render.diff import DiffRow, Spans, paired_rows, unified_rows
from mtmc_tui.screen.render.words import percent_text
from mtmc_tui.screen.view import CODE, TABS, View, shown_node, shown_option

GUTTER = 5


@dataclass(frozen=True)
class CodeText:
    """What the code pane draws.

    stops: lines that n and N jump between: hunk heads, or matches of the filter.
    """

    lines: tuple[Content, ...]
    stops: tuple[int, ...] = ()


def code_text(snapshot: Snapshot, view: View, width: int) -> CodeText:
    """The chosen tab for the program that is shown."""
    node = shown_node(snapshot, view)
    option = shown_option(snapshot, view)
    if view.tab == "reference":
        text = _source(snapshot.task.source if snapshot.task else "", "not read yet")
    elif option is not None:
        text = CodeText(tuple(_option(snapshot, view, width)))
    elif node is None:
        text = _said("no program yet")
    elif view.tab == "ptx":
        text = _ptx(node)
    elif view.tab == "source" or node.parent is None:
        text = _source(node.source, "no source")
    else:
        text = _diff(snapshot, node, view, width)
    return _marked(text, view.filter(CODE))


def code_title(view: View) -> Content:
    """The tabs, as they stand in the pane's border."""
    parts: list[str | tuple[str, str]] = ["3 Code "]
    for place, tab in enumerate(TABS):
        if place:
            parts.append((f" {view.glyphs.separator} ", "not bold"))
        style = "bold reverse" if tab == view.tab else "not bold"
        parts.append((f" {tab} " if tab == view.tab else tab, f"{style} @click=screen.tab('{tab}')"))
    return Content.assemble(*parts)


def _diff(snapshot: Snapshot, node: Node, view: View, width: int) -> CodeText:
    parent = snapshot.nodes.get(node.parent or "")
    before = parent.source if parent else ""
    lines: list[Content] = []
    if node.action is not None and node.action.reason:
        lines += _wrapped("why: ", node.action.reason, width)
    if before == node.source:
        return CodeText((*lines, Content.styled("the source is the same", "$text-muted")))
    if view.split:
        rows = paired_rows(before, node.source)
        body = [_paired_line(row, before, node.source, width, view.glyphs) for row in rows]
    else:
        rows = unified_rows(before, node.source)
        body = [_unified_line(row, before, node.source, width, view.glyphs) for row in rows]
    stops = tuple(len(lines) + at for at, row in enumerate(rows) if row.kind == "@")
    return CodeText((*lines, *body), stops)


def _unified_line(row: DiffRow, old: str, new: str, width: int, signs: Glyphs) -> Content:
    if row.kind == "@":
        return _head(row, width, signs)
    if row.kind == "-":
        assert row.old is not None
        line = _side(old, row.old, row.old_spans, "removed", signs.removed)
        return line.pad_right(max(0, width - line.cell_length)).stylize("on $diff-removed")
    assert row.new is not None
    if row.kind == "+":
        line = _side(new, row.new, row.new_spans, "added", signs.added)
        return line.pad_right(max(0, width - line.cell_length)).stylize("on $diff-added")
    return _side(new, row.new, (), "", " ")


def _paired_line(row: DiffRow, old: str, new: str, width: int, signs: Glyphs) -> Content:
    if row.kind == "@":
        return _head(row, width, signs)
    half = (width - 1) // 2
    left = _half(old, row.old, row.old_spans, "removed" if row.kind in "-~" else "", half, signs)
    right = _half(new, row.new, row.new_spans, "added" if row.kind in "+~" else "", half, signs)
    return Content.assemble(left, (signs.separator, "$text-disabled"), right)


def _half(
    source: str, at: int | None, spans: Spans, change: str, width: int, signs: Glyphs
) -> Content:
    if at is None:
        return Content(" " * width)
    sign = {"removed": signs.removed, "added": signs.added}.get(change, " ")
    line = _side(source, at, spans, change, sign).truncate(width, ellipsis=False, pad=True)
    return line.stylize(f"on $diff-{change}") if change else line


def _side(source: str, at: int, spans: Spans, change: str, sign: str) -> Content:
    """Line number, sign and highlighted text; the words that changed stand out."""
    text = highlighted(source)[at]
    for start, end in spans:
        text = text.stylize(f"bold on $diff-{change}-word", start, end)
    style = f"bold $diff-{change}-sign" if change else ""
    return Content.assemble((f"{at + 1:>{GUTTER - 1}} ", "$text-disabled"), (f"{sign} ", style), text)


def _head(row: DiffRow, width: int, signs: Glyphs) -> Content:
    head = f"@@ {row.head} @@" if row.head else "@@"
    rule = signs.rule * max(0, width - len(head) - 1)
    return Content.assemble((head, "bold $diff-hunk"), (f" {rule}", "$text-disabled"))


def _source(source: str, otherwise: str) -> CodeText:
    if not source:
        return _said(otherwise)
    return CodeText(tuple(_side(source, at, (), "", "") for at in range(len(highlighted(source)))))


def _ptx(node: Node) -> CodeText:
    ptx = node.evidence(Gate.COMPILE).get("ptx")
    if not isinstance(ptx, str) or not ptx:
        return _said("not kept")
    return CodeText(tuple(Content(line) for line in ptx.splitlines()))


def _option(snapshot: Snapshot, view: View, width: int) -> list[Content]:
    """A proposed action: why, how each part of the planner scored it, and what it read."""
    option = shown_option(snapshot, view)
    assert option is not None
    assert snapshot.proposal is not None
    parts = ", ".join(f"{name} {percent_text(p)}" for name, p in option.parts.items())
    lines = [
        Content.assemble((option.action.phrase, "bold"), "  proposed, not tried"),
        *_wrapped("why: ", option.action.reason or "no reason given", width),
        *_wrapped("score: ", f"{percent_text(option.probability)} of all legal actions", width),
    ]
    if parts:
        lines += _wrapped("parts: ", parts, width)
    took = f"{snapshot.proposal.planner}, {snapshot.proposal.seconds:.1f} s"
    lines += _wrapped("planner: ", took, width)
    lines += [Content(""), Content.styled("what the planner read:", "$text-muted")]
    return lines + [Content.styled(text, "$text-muted") for text in _state_lines(snapshot, width)]


def _state_lines(snapshot: Snapshot, width: int) -> list[str]:
    assert snapshot.proposal is not None
    return [
        line[at : at + width]
        for line in snapshot.proposal.state_text.splitlines()
        for at in range(0, max(1, len(line)), max(1, width))
    ]


def _wrapped(name: str, text: str, width: int) -> list[Content]:
    line = Content.assemble((name, "bold $text-accent"), text)
    return line.wrap(max(20, width))


def _said(text: str) -> CodeText:
    return CodeText((Content.styled(text, "$text-muted"),))


def _marked(text: CodeText, wanted: str) -> CodeText:
    """Matches of the filter marked, and made the stops of n and N."""
    if not wanted:
        return text
    lines, stops = list(text.lines), []
    for at, line in enumerate(lines):
        start = line.plain.lower().find(wanted.lower())
        if start >= 0:
            lines[at] = line.stylize("reverse", start, start + len(wanted))
            stops.append(at)
    return CodeText(tuple(lines), tuple(stops))


@lru_cache(maxsize=64)
def highlighted(source: str) -> tuple[Content, ...]:
    """Python source as one styled line each; pygments loads on the first call."""
    from textual.highlight import highlight

    from mtmc_tui.screen.render.syntax import SyntaxTheme

    text = highlight(source, language="python", theme=SyntaxTheme, tab_size=4)
    return tuple(text.split("\n", allow_blank=True))[: len(source.splitlines())]


