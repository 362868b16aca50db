"""Bars of time: the shown program beside what it is compared with, and the memory floor.

A measured bar is solid and carries an interval; an estimated one is hollow, wears the sign for
"about", and the word; a replayed one is grey and says so too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from textual.content import Content

from mtmc_engine.core.events import BestChanged
from mtmc_engine.core.measurement import GroupCost, Measurement, TimeKind
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import ORIGINAL, Node, Snapshot
from mtmc_tui.screen.render.words import clip, percent_text, ratio_text, task_kind, time_text
from mtmc_tui.screen.view import View, shown_node

BASELINES = ("eager", "torch.compile", "original", "previous")
FASTER = " as fast"
LEAST_BAR = 8
NAME_WIDTH = 14
TIME_WIDTH = 11


@dataclass(frozen=True)
class Bar:
    """One line: a contestant's time, and what the shown program has to do with it."""

    name: str
    time_us: float
    kind: TimeKind
    note: str
    style: str


def bars(snapshot: Snapshot, node: Node, signs: Glyphs, name: str = "this program") -> list[Bar]:
    """Baselines, the best so far, the shown program, the memory floor.

    Empty where it is not timed. name: of the shown program.
    """
    measurement = node.measurement
    if measurement is None:
        return []
    kind = measurement.kind
    names = [rival for rival in BASELINES if rival != "previous" or node.parent != ORIGINAL]
    rows = [
        Bar(rival, time_us, kind, _against(measurement, rival, name, signs), "$primary")
        for rival in names
        if (time_us := baseline_us(measurement, rival)) is not None
    ]
    best = snapshot.best
    beaten = best is not None and _beats(node, best)
    others = (ORIGINAL, node.id, node.parent)
    if best is not None and best.node not in others and not (beaten and node.state == "kept"):
        rows += _best_bar(best, signs)
    own = name if node.parent else "original"
    if node.parent is not None or not any(row.name == "original" for row in rows):
        note = _own_note(snapshot, node, beaten)
        rows.append(Bar(own, measurement.time_us, kind, note, _own_style(measurement)))
    note = _reached(measurement, snapshot.costs.get(node.id, measurement.groups))
    rows.append(Bar("memory floor", measurement.floor_us, "estimated", note, "$quiet"))
    return rows


def _best_bar(best: BestChanged, signs: Glyphs) -> list[Bar]:
    """None where it has no time."""
    if best.ratio is None or best.time_us is None or best.time_kind is None:
        return []
    note = f"{ratio_text(best.ratio, signs, best.time_kind)}{FASTER} as the original"
    return [Bar("best so far", best.time_us, best.time_kind, note, "$state-approved")]


def _beats(node: Node, best: BestChanged) -> bool:
    """Whether a program is faster than the best one that was kept before it."""
    own = node.measurement
    if own is None or best.time_us is None:
        return False
    return own.kind == best.time_kind and own.time_us < best.time_us


def _own_note(snapshot: Snapshot, node: Node, beaten: bool) -> str:
    if node.parent is None:
        return ""
    if snapshot.best_node == node.id:
        return "best so far"
    return "faster than the best so far" if beaten and snapshot.waiting(node) else ""


def _reached(measurement: Measurement, costs: tuple[GroupCost, ...]) -> str:
    """Share of the memory floor; of the compute roof too where that binds most of the time."""
    if not measurement.floor_us or not measurement.time_us:
        return ""
    note = f"{percent_text(measurement.floor_us / measurement.time_us)} reached"
    total = sum(cost.time_us for cost in costs)
    bound = [cost for cost in costs if cost.bound == "compute"]
    if 2 * sum(cost.time_us for cost in bound) <= total:
        return note
    share = sum(cost.of_peak * cost.time_us for cost in bound) / total
    return f"{note}, {percent_text(share)} of compute"


def baseline_us(measurement: Measurement, name: str) -> float | None:
    """Time of a baseline: its own samples, else what the ratio implies."""
    for contestant in measurement.contestants:
        if contestant.name == name:
            return contestant.time_us
    ratio = measurement.against.get(name)
    return ratio.value * measurement.time_us if ratio else None


def time_lines(snapshot: Snapshot, view: View, width: int) -> list[Content]:
    """The whole pane."""
    signs = view.glyphs
    node = shown_node(snapshot, view)
    if node is None:
        return [Content.styled("no program yet", "$quiet")]
    rows = bars(snapshot, node, signs)
    if not rows:
        return [
            Content.styled(_untimed(node), "$quiet"),
            *_ancestor(snapshot, view, node, width),
        ]
    return draw(rows, width, signs)


def draw(rows: list[Bar], width: int, signs: Glyphs) -> list[Content]:
    """Bars on one scale: the slowest fills what the words leave."""
    if _room(rows, width) < LEAST_BAR:
        rows = [replace(row, note=row.note.replace(FASTER, "")) for row in rows]
    room = _room(rows, width)
    longest = max(row.time_us for row in rows) or 1.0
    return [_bar_line(row, max(4, room), longest, signs) for row in rows]


def _room(rows: list[Bar], width: int) -> int:
    return width - NAME_WIDTH - TIME_WIDTH - max(len(row.note) for row in rows) - 3


def time_title(snapshot: Snapshot, view: View) -> str:
    """ "measured", or the word that keeps an estimate from passing for one."""
    node = shown_node(snapshot, view)
    if node is not None and node.measurement is not None:
        kind: TimeKind | None = node.measurement.kind
    elif snapshot.task is not None:
        kind = task_kind(snapshot.task)
    else:
        return ""
    if kind is None:
        return "nothing here can time it"
    if kind == "measured":
        return "measured"
    if kind == "replayed":
        return f"{view.glyphs.replayed} REPLAYED from a recording, not measured"
    return f"{view.glyphs.about} ESTIMATED, not measured"


def _bar_line(row: Bar, room: int, longest: float, signs: Glyphs) -> Content:
    bar = bar_text(row.time_us / longest, room, signs, row.kind)
    return Content.assemble(
        f"{clip(row.name, NAME_WIDTH, signs):<{NAME_WIDTH}}",
        (f"{time_text(row.time_us, signs, row.kind):>{TIME_WIDTH}} ", "bold"),
        (f"{bar:<{room}} ", row.style),
        row.note,
    )


def bar_text(fraction: float, room: int, signs: Glyphs, kind: TimeKind) -> str:
    """A bar of up to `room` cells; measured ones in eighths, estimated ones hollow."""
    if kind != "measured":
        sign = signs.estimated_bar if kind == "estimated" else signs.replayed_bar
        return sign * max(1, round(fraction * room))
    steps = len(signs.bar_parts) + 1
    whole, part = divmod(max(1, round(fraction * room * steps)), steps)
    return signs.bar * whole + (signs.bar_parts[part - 1] if part else "")


def _against(measurement: Measurement, rival: str, name: str, signs: Glyphs) -> str:
    """ "this is 1.18x as fast [1.16, 1.20]": the program's speed, not that of the rival."""
    ratio = measurement.against.get(rival)
    if ratio is None:
        return ""
    subject = name.removesuffix(" program")
    note = f"{subject} is {ratio_text(ratio.value, signs, measurement.kind)}{FASTER}"
    if measurement.kind == "estimated":
        return note
    return f"{note} [{ratio.low:.2f}, {ratio.high:.2f}]"


def _own_style(measurement: Measurement) -> str:
    ratio = measurement.against.get("previous") or measurement.against.get("original")
    if ratio is None or ratio.low <= 1.0 <= ratio.high:
        return ""
    return "$state-faster" if ratio.low > 1.0 else "$state-slower"


def _untimed(node: Node) -> str:
    if node.verdict is not None and not node.verdict.proven:
        return f"not timed: {node.verdict.verdict}"
    if node.verdict is not None:
        return "not timed"
    return "not timed yet; its parent:"


def _ancestor(snapshot: Snapshot, view: View, node: Node, width: int) -> list[Content]:
    if node.verdict is not None:
        return []
    parent = snapshot.nodes.get(node.parent or "")
    if parent is None or parent.measurement is None:
        return []
    return draw(bars(snapshot, parent, view.glyphs, "parent"), width, view.glyphs)
