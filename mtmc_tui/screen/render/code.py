"""The code pane: diff against the parent, source, reference and PTX, as styled lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from textual.content import Content

from mtmc_engine.core.verdict import Gate
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import Node, Snapshot
from mtmc_tui.screen.render.diff import DiffRow, Spans, paired_rows, unified_rows
from mtmc_tui.screen.render.talk import Lines, prompt_lines, reply_lines
from mtmc_tui.screen.render.words import percent_text
from mtmc_tui.screen.view import CODE, View, shown_node, shown_option, tabs_of

GUTTER = 5
BREAKS = " ,([{"


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
    if view.tab == "prompt":
        text = _talk(prompt_lines(snapshot, view, width))
    elif view.tab == "reply":
        text = _talk(reply_lines(snapshot, view, width))
    elif view.tab == "reference":
        text = _source(snapshot.task.source if snapshot.task else "", "not read yet", width)
    elif option is not None:
        text = CodeText(tuple(_option(snapshot, view, width)))
    elif node is None:
        text = _said("no program yet", width)
    elif view.tab == "ptx":
        text = _ptx(node, width)
    elif view.tab == "source" or node.parent is None:
        text = _source(node.source, "no source", width)
    else:
        text = _diff(snapshot, node, view, width)
    return _marked(text, view.filter(CODE))


def _talk(said: Lines) -> CodeText:
    lines, heads = said
    return CodeText(tuple(lines), tuple(heads))


def code_title(snapshot: Snapshot, view: View, width: int) -> Content:
    """The tabs, as they stand in the pane's border, close together where they do not fit."""
    roomy = _title(snapshot, view, f" {view.glyphs.separator} ")
    return roomy if roomy.cell_length < width else _title(snapshot, view, view.glyphs.separator)


def _title(snapshot: Snapshot, view: View, between: str) -> Content:
    parts: list[str | tuple[str, str]] = ["3 Code "]
    for place, tab in enumerate(tabs_of(snapshot)):
        if place:
            parts.append((between, "not bold"))
        style = "bold reverse" if tab == view.tab else "not bold"
        parts.append(
            (f" {tab} " if tab == view.tab else tab, f"{style} @click=screen.tab('{tab}')")
        )
    return Content.assemble(*parts)


def _diff(snapshot: Snapshot, node: Node, view: View, width: int) -> CodeText:
    parent = snapshot.nodes.get(node.parent or "")
    before = parent.source if parent else ""
    lines: list[Content] = []
    stops: list[int] = []
    if node.action is not None and node.action.reason:
        lines += _wrapped("why: ", node.action.reason, width)
    if before == node.source:
        return CodeText((*lines, Content.styled("the source is the same", "$quiet")))
    sheet = _Sheet(before, node.source, width, view.glyphs)
    rows = paired_rows if view.split else unified_rows
    for row in rows(before, node.source):
        if row.kind == "@":
            stops.append(len(lines))
            lines.append(sheet.head(row))
        else:
            lines += sheet.paired(row) if view.split else sheet.unified(row)
    return CodeText(tuple(lines), tuple(stops))


@dataclass(frozen=True)
class _Sheet:
    """Draws the rows of one diff: long lines go on below their own start."""

    old: str
    new: str
    width: int
    signs: Glyphs

    def head(self, row: DiffRow) -> Content:
        head = f"@@ {row.head} @@" if row.head else "@@"
        rule = self.signs.rule * max(0, self.width - len(head) - 1)
        return Content.assemble((head, "bold $diff-hunk"), (f" {rule}", "$faint"))

    def unified(self, row: DiffRow) -> list[Content]:
        if row.kind == "-":
            return self._changed(self.old, row.old, row.old_spans, "removed", self.width)
        if row.kind == "+":
            return self._changed(self.new, row.new, row.new_spans, "added", self.width)
        assert row.new is not None
        return code_lines(self.new, row.new, self.width)

    def paired(self, row: DiffRow) -> list[Content]:
        half = (self.width - 1) // 2
        removed = "removed" if row.kind in "-~" else ""
        added = "added" if row.kind in "+~" else ""
        left = self._changed(self.old, row.old, row.old_spans, removed, half)
        right = self._changed(self.new, row.new, row.new_spans, added, half)
        blank = Content(" " * half)
        height = max(len(left), len(right))
        left += [blank] * (height - len(left))
        right += [blank] * (height - len(right))
        bar = (self.signs.separator, "$faint")
        return [Content.assemble(a, bar, b) for a, b in zip(left, right, strict=True)]

    def _changed(
        self, source: str, at: int | None, spans: Spans, change: str, width: int
    ) -> list[Content]:
        """One side of a row over the whole width; empty where that side has no line."""
        if at is None:
            return []
        sign = {"removed": self.signs.removed, "added": self.signs.added}.get(change, " ")
        text = highlighted(source)[at]
        for start, end in spans:
            text = text.stylize(f"bold on $diff-{change}-word", start, end)
        style = f"bold $diff-{change}-sign" if change else ""
        lines = [
            line.pad_right(max(0, width - line.cell_length))
            for line in _numbered(text, at, (f"{sign} ", style), width)
        ]
        if not change:
            return lines
        return [line.stylize_before(f"on $diff-{change}") for line in lines]


def code_lines(source: str, at: int, width: int) -> list[Content]:
    """Line `at` of a source with its number, folded to `width` cells."""
    return _numbered(highlighted(source)[at], at, ("  ", ""), width)


def _numbered(text: Content, at: int, sign: tuple[str, str], width: int) -> list[Content]:
    number = (f"{at + 1:>{GUTTER - 1}} ", "$faint")
    first, *others = folded(text, max(16, width - GUTTER - 2))
    indent = " " * (GUTTER + 2)
    return [Content.assemble(number, sign, first), *(indent + line for line in others)]


def folded(text: Content, width: int) -> list[Content]:
    """A line of code in parts of at most `width` cells, cut after a space, comma or bracket.

    Later parts are indented two more than the line itself.
    """
    if text.cell_length <= width:
        return [text]
    plain = text.plain
    indent = min(len(plain) - len(plain.lstrip()) + 2, width // 2)
    parts, start, room = [], 0, width
    while len(plain) - start > room:
        cut = max(plain.rfind(mark, start, start + room) for mark in BREAKS) + 1
        cut = cut if cut > start + room // 2 else start + room
        parts.append(text[start:cut])
        start, room = cut, width - indent
    parts.append(text[start:])
    return [parts[0], *(" " * indent + part for part in parts[1:])]


def _source(source: str, otherwise: str, width: int) -> CodeText:
    if not source:
        return _said(otherwise, width)
    lines = range(len(highlighted(source)))
    return CodeText(tuple(part for at in lines for part in code_lines(source, at, width)))


def _ptx(node: Node, width: int) -> CodeText:
    """One text for all kernels; n and N jump between them."""
    if not node.ptx:
        return _said(_no_ptx(node), width)
    lines = [Content(line.replace("\t", "  ")) for line in node.ptx.splitlines()]
    heads = [at for at, line in enumerate(lines) if line.plain.startswith("// ")]
    for at in heads:
        lines[at] = lines[at].stylize("bold")
    return CodeText(tuple(lines), tuple(heads))


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
    lines += [Content(""), Content.styled("what the planner read:", "$quiet")]
    return lines + [Content.styled(text, "$quiet") for text in _state_lines(snapshot, width)]


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


def _no_ptx(node: Node) -> str:
    if any(result.gate is Gate.COMPILE for result in node.gates):
        return "No kernel of this program was compiled ahead of time."
    return "The original runs as it is." if node.parent is None else "Not compiled yet."


def _said(text: str, width: int) -> CodeText:
    return CodeText(tuple(Content.styled(text, "$quiet").wrap(max(20, width))))


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
