"""A verdict in a few words, with the ratio that it rests on."""

from __future__ import annotations

from mtmc_engine.core.measurement import Ratio
from mtmc_engine.core.verdict import PROVEN, Class
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import Node
from mtmc_tui.screen.render.words import interval_text


def verdict_words(node: Node, signs: Glyphs) -> tuple[str, str]:
    """The verdict in a few words with its style: "FASTER 1.55x [1.52, 1.58] than previous"."""
    verdict = node.verdict
    if verdict is None:
        return "no verdict yet", "$quiet"
    if verdict.verdict not in PROVEN:
        return f"{signs.failed} {verdict.verdict}", "$state-failed"
    style = {Class.FASTER: "$state-faster", Class.SLOWER: "$state-slower"}
    text = f"{signs.kept} {verdict.verdict}"
    if verdict.measurement is not None:
        ratio = compared(verdict.measurement.against)
        if ratio is not None:
            name, value = ratio
            text += f" {interval_text(value, signs, verdict.measurement.kind)} vs {name}"
    return text, style.get(verdict.verdict, "")


def compared(against: dict[str, Ratio]) -> tuple[str, Ratio] | None:
    """The baseline that a step is judged by: the step before, else the original."""
    for name in ("previous", "original", "eager"):
        if name in against:
            return name, against[name]
    return None
