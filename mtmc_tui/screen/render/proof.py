"""The gates of a candidate, what they found, and the verdict in words."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from mtmc_engine.core.verdict import Gate, GateResult
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import Node, Snapshot
from mtmc_tui.screen.render.status import verdict_words
from mtmc_tui.screen.render.words import bytes_text
from mtmc_tui.screen.view import View, shown_node

LOG_LINES = 200


def proof_lines(snapshot: Snapshot, view: View) -> list[Content]:
    """Gates, facts, verdict, warnings, then the end of the failed gate's own output."""
    node = shown_node(snapshot, view)
    if node is None:
        return [Content.styled("no program yet", "$text-muted")]
    if node.parent is None:
        return [Content.styled("the original: every candidate is proven against it", "$text-muted")]
    lines = [gate_line(node, snapshot, view.glyphs)]
    facts = fact_text(node, view.glyphs)
    if facts:
        lines.append(Content(facts))
    if node.verdict is not None:
        lines.append(_verdict_line(node, view.glyphs))
        lines += [
            Content.assemble((f"{view.glyphs.warning} ", "$state-slower"), warning)
            for warning in node.verdict.warnings
        ]
    if node.reason:
        lines.append(Content.assemble(("decided: ", "$text-muted"), node.reason))
    return [*lines, *_log(node)]


def gate_line(node: Node, snapshot: Snapshot, signs: Glyphs) -> Content:
    """ "✓ parse ✓ compile 1.2 s › values 23/41": one mark a gate, in order."""
    by_gate = {result.gate: result for result in node.gates}
    parts: list[str | tuple[str, str]] = []
    for gate in Gate:
        result = by_gate.get(gate)
        if result is not None:
            parts += [_finished(result, signs), "  "]
        elif node.gate == gate:
            parts += [(f"{signs.running} {gate.value}{_count(snapshot)}", "bold $state-running"), "  "]
        elif node.verdict is None and gate is not Gate.INTEGRITY:
            parts += [(f"{signs.proposed} {gate.value}", "$text-muted"), "  "]
    return Content.assemble(*parts)


def _finished(result: GateResult, signs: Glyphs) -> tuple[str, str]:
    glyph, style = (
        (signs.kept, "$state-approved") if result.passed else (signs.failed, "bold $state-failed")
    )
    words = result.gate.value if result.passed else f"{result.gate.value} failed"
    counted = case_count(result.evidence)
    if counted:
        words += f" {counted}"
    if result.seconds >= 0.05:
        words += f" {result.seconds:.1f} s"
    return f"{glyph} {words}", style


def _count(snapshot: Snapshot) -> str:
    phase = snapshot.phase
    if phase is None or phase.total is None or phase.done is None:
        return ""
    return f" {phase.done}/{phase.total}"


def case_count(evidence: Mapping[str, object]) -> str:
    """ "41/41" where the gate says how many cases it ran; empty elsewhere."""
    passed, total = evidence.get("cases_passed"), evidence.get("cases")
    if not isinstance(total, int):
        return ""
    return f"{passed if isinstance(passed, int) else total}/{total}"


def fact_text(node: Node, signs: Glyphs) -> str:
    """Registers, shared memory, spills and error against the reference, as far as known."""
    compiled = node.evidence(Gate.COMPILE)
    values = node.evidence(Gate.VALUES)
    facts = [
        _fact("registers", compiled.get("registers")),
        _fact("shared", compiled.get("shared_bytes"), bytes_text),
        _fact("spills", compiled.get("spills")),
        _error(values),
    ]
    return f" {signs.dot} ".join(fact for fact in facts if fact)


def _fact(name: str, value: object, write: object = None) -> str:
    if not isinstance(value, int | float):
        return ""
    return f"{name} {write(value) if callable(write) else value}"


def _error(values: Mapping[str, object]) -> str:
    ratio = values.get("error_ratio")
    if isinstance(ratio, int | float):
        return f"error {ratio:.2g}x the reference's"
    error = values.get("error")
    return f"error {error:.2g}" if isinstance(error, int | float) else ""


def _verdict_line(node: Node, signs: Glyphs) -> Content:
    assert node.verdict is not None
    words, style = verdict_words(node, signs)
    return Content.assemble((words, f"bold {style}".strip()), "  ", node.verdict.reason)


def _log(node: Node) -> list[Content]:
    failed = next((result for result in node.gates if not result.passed and result.log), None)
    if failed is None:
        return []
    tail = failed.log.splitlines()[-LOG_LINES:]
    return [
        Content.styled(f"output of {failed.gate.value}:", "$text-muted"),
        *(Content.styled(line, "$text-muted") for line in tail),
    ]
