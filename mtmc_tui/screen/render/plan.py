"""The plan tree as lines: programs tried so far, and the options of the current proposal."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content

from mtmc_engine.core.measurement import Measurement
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import ORIGINAL, Node, Snapshot
from mtmc_tui.screen.render.words import clip, percent_text, ratio_text, time_text
from mtmc_tui.screen.view import MORE, OPTION, PLAN, View

OPTIONS_SHOWN = 5
VALUE_WIDTH = 9
WORD_WIDTH = 8


@dataclass(frozen=True)
class PlanRow:
    """One line of the tree.

    key:   a node's id, "option:<phrase>" or "more".
    value: a number such as "1.31x" or "62 %"; `word` names the state.
    """

    key: str
    guide: str
    glyph: str
    text: str
    value: str
    word: str
    style: str


def plan_rows(snapshot: Snapshot, view: View) -> list[PlanRow]:
    """The tree from the original down, depth first, children in the order they were tried."""
    root = snapshot.nodes.get(ORIGINAL)
    if root is None:
        return []
    rows = [_node_row(snapshot, view.glyphs, root, "")]
    _descend(snapshot, view, root, "", rows)
    wanted = view.filter(PLAN).lower()
    return [row for row in rows if wanted in f"{row.text} {row.word}".lower()]


def plan_line(row: PlanRow, width: int, signs: Glyphs) -> Content:
    """One row fitted to `width` cells: phrase on the left, number and state on the right."""
    roomy = width >= 34
    end = f"{row.value:>{VALUE_WIDTH}}" if roomy else f"{row.value:>7}"
    word = row.word if roomy or not row.value else ""
    if not row.value:
        end = f" {word:>{VALUE_WIDTH + WORD_WIDTH}}" if roomy else f"{word:>7}"
    elif roomy:
        end += f" {word:<{WORD_WIDTH}}"
    room = width - len(end) - len(row.guide) - 3
    text = clip(row.text, room, signs)
    return Content.assemble(
        (row.guide, "$faint"),
        (f"{row.glyph} ", row.style),
        (f"{text:<{max(0, room)}} ", "" if row.key in ("", MORE) else _weight(row)),
        (end, row.style),
    )


def _weight(row: PlanRow) -> str:
    if row.word in ("best", "waiting", "proving"):
        return "bold"
    return "$quiet" if row.key.startswith(OPTION) or row.word == "rejected" else ""


def _descend(snapshot: Snapshot, view: View, node: Node, indent: str, rows: list[PlanRow]) -> None:
    signs = view.glyphs
    children = snapshot.children(node.id)
    leaves = _leaves(snapshot, view, node)
    count = len(children) + len(leaves)
    for place, child in enumerate(children, 1):
        last = place == count
        rows.append(
            _node_row(snapshot, signs, child, indent + (signs.last if last else signs.branch))
        )
        _descend(snapshot, view, child, indent + (signs.gap if last else signs.trunk), rows)
    for place, (key, glyph, text, value, word, style) in enumerate(leaves, len(children) + 1):
        guide = indent + (signs.last if place == count else signs.branch)
        rows.append(PlanRow(key, guide, glyph, text, value, word, style))


def _leaves(
    snapshot: Snapshot, view: View, node: Node
) -> list[tuple[str, str, str, str, str, str]]:
    if snapshot.proposal is None or snapshot.proposal.node != node.id:
        return []
    signs = view.glyphs
    leaves = []
    pending = snapshot.pending.action.phrase if snapshot.pending else ""
    options = snapshot.options()
    shown = options if view.every_option else options[:OPTIONS_SHOWN]
    again = snapshot.pending
    if again is not None and again.node == node.id and again.attempt > 1:
        text = f"{again.action.phrase} (attempt {again.attempt})"
        key = OPTION + again.action.phrase
        leaves.append((key, signs.running, text, "", "coding", "$state-running"))
    for option in shown:
        phrase = option.action.phrase
        coding = phrase == pending
        leaves.append(
            (
                OPTION + phrase,
                signs.running if coding else signs.proposed,
                phrase,
                percent_text(option.probability),
                "coding" if coding else "proposed",
                "$state-running" if coding else "$state-proposed",
            )
        )
    if len(options) > OPTIONS_SHOWN:
        text = "fewer" if view.every_option else _more(len(options) - OPTIONS_SHOWN)
        leaves.append((MORE, signs.proposed, text, "enter", "", "$quiet"))
    return leaves


def _more(count: int) -> str:
    return f"{count} more option" if count == 1 else f"{count} more options"


def _node_row(snapshot: Snapshot, signs: Glyphs, node: Node, guide: str) -> PlanRow:
    glyph, word, style = _state(snapshot, signs, node)
    text = node.action.phrase if node.action else "original"
    text += _which(snapshot, node)
    if node.gate is not None:
        return PlanRow(node.id, guide, glyph, text, node.gate.value, word, style)
    if node.verdict is not None and not node.verdict.proven:
        return PlanRow(node.id, guide, glyph, text, "", node.verdict.verdict.value, style)
    return PlanRow(node.id, guide, glyph, text, _value(snapshot, signs, node), word, style)


def _which(snapshot: Snapshot, node: Node) -> str:
    """ " (attempt 2)", " (sample 1)"; "" for the only candidate of a first attempt."""
    attempt = f"attempt {node.attempt}" if node.attempt > 1 else ""
    round_of = (node.parent, node.step, node.attempt)
    together = [n for n in snapshot.nodes.values() if (n.parent, n.step, n.attempt) == round_of]
    sample = f"sample {node.sample + 1}" if any(n.sample for n in together) else ""
    parts = ", ".join(filter(None, (attempt, sample)))
    return f" ({parts})" if parts else ""


def _state(snapshot: Snapshot, signs: Glyphs, node: Node) -> tuple[str, str, str]:
    """Glyph, word and style."""
    best = snapshot.best_node == node.id
    if snapshot.waiting(node):
        return signs.ask, "waiting", "bold $state-proposed"
    if snapshot.proving(node):
        return signs.running, "proving", "$state-running"
    if node.parent is None:
        return signs.original, "best" if best else "", "$state-approved" if best else ""
    if best:
        return signs.kept, "best", "bold $state-faster"
    return {
        "failed": (signs.failed, "failed", "$state-failed"),
        "kept": (signs.kept, "kept", "$state-approved"),
        "rejected": (signs.rejected, "rejected", "$state-rejected"),
    }.get(node.state, (signs.open, node.state, "$state-proposed"))


def _value(snapshot: Snapshot, signs: Glyphs, node: Node) -> str:
    measurement = node.measurement
    if node.parent is None:
        return original_time(snapshot, signs)
    if measurement is None:
        return ""
    ratio = measurement.against.get("original") or measurement.against.get("previous")
    return ratio_text(ratio.value, signs, measurement.kind) if ratio else ""


def original_time(snapshot: Snapshot, signs: Glyphs) -> str:
    """The time of the original, from its own measurement or from what a step was compared with."""
    root = snapshot.nodes[ORIGINAL]
    if root.measurement is not None:
        return time_text(root.measurement.time_us, signs, root.measurement.kind)
    for node in snapshot.nodes.values():
        time_us = _implied(node.measurement)
        if time_us is not None and node.measurement is not None:
            return time_text(time_us, signs, node.measurement.kind)
    return ""


def _implied(measurement: Measurement | None) -> float | None:
    if measurement is None or "original" not in measurement.against:
        return None
    return measurement.against["original"].value * measurement.time_us
