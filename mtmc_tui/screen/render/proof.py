"""The gates of a candidate, what they found, and the verdict in words."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from mtmc_engine.core.verdict import Gate, GateResult
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import Node, Snapshot
from mtmc_tui.screen.render.status import verdict_words
from mtmc_tui.screen.render.words import bytes_text, percent_text
from mtmc_tui.screen.view import View, shown_node

LOG_LINES = 200
WORTH_SAYING_S = 1.0


def proof_lines(snapshot: Snapshot, view: View) -> list[Content]:
    """Gates, facts, verdict, warnings, then the end of the failed gate's own output."""
    node = shown_node(snapshot, view)
    if node is None:
        return [Content.styled("no program yet", "$quiet")]
    if node.parent is None:
        return [Content.styled("the original: every candidate is proven against it", "$quiet")]
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
        lines.append(Content.assemble(("decided: ", "$quiet"), node.reason))
    return [*lines, *_log(node)]


def gate_line(node: Node, snapshot: Snapshot, signs: Glyphs) -> Content:
    """ "✓ parse ✓ compile 1.2 s › values 23/41": one mark a gate, in order."""
    by_gate = {result.gate: result for result in node.gates}
    parts: list[str | tuple[str, str]] = []
    for gate in Gate:
        result = by_gate.get(gate)
        if result is not None:
            parts += [_finished(result, signs), " "]
        elif node.gate == gate:
            parts += [
                (f"{signs.running} {gate.value}{_count(snapshot)}", "bold $state-running"),
                " ",
            ]
        elif node.verdict is None and gate is not Gate.INTEGRITY:
            parts += [(f"{signs.proposed} {gate.value}", "$quiet"), " "]
    return Content.assemble(*parts)


def _finished(result: GateResult, signs: Glyphs) -> tuple[str, str]:
    glyph, style = (
        (signs.kept, "$state-approved") if result.passed else (signs.failed, "bold $state-failed")
    )
    words = result.gate.value if result.passed else f"{result.gate.value} failed"
    counted = case_count(result.evidence)
    if counted:
        words += f" {counted}"
    elif result.seconds >= WORTH_SAYING_S:
        words += f" {result.seconds:.1f} s"
    return f"{glyph} {words}", style


def _count(snapshot: Snapshot) -> str:
    phase = snapshot.phase
    if phase is None or phase.total is None or phase.done is None:
        return ""
    return f" {phase.done}/{phase.total}"


def case_count(evidence: Mapping[str, object]) -> str:
    """ "41/41" where the gate says how many cases it ran; empty elsewhere."""
    cases = evidence.get("cases")
    return cases if isinstance(cases, str) else ""


def fact_text(node: Node, signs: Glyphs) -> str:
    """Registers, shared memory and spills of the largest kernel, and the error; as far as known."""
    kernels = node.evidence(Gate.COMPILE).get("kernels")
    launches = (
        [kernel for kernel in kernels if isinstance(kernel, dict)]
        if isinstance(kernels, list)
        else []
    )
    facts = [f"{len(launches)} kernels" if len(launches) > 1 else ""]
    for key, name in (
        ("registers", "registers"),
        ("shared_bytes", "shared"),
        ("spill_bytes", "spills"),
    ):
        numbers = [kernel[key] for kernel in launches if isinstance(kernel.get(key), int)]
        if numbers:
            most = max(numbers)
            facts.append(f"{name} {bytes_text(most) if key == 'shared_bytes' else most}")
    facts.append(_error(node.evidence(Gate.VALUES)))
    return f" {signs.dot} ".join(fact for fact in facts if fact)


def _error(values: Mapping[str, object]) -> str:
    share = values.get("worst_share_of_bound")
    if isinstance(share, int | float):
        return f"error {percent_text(share)} of the bound"
    error, own = values.get("error"), values.get("reference_error")
    if isinstance(error, int | float) and isinstance(own, int | float):
        return f"error {error:.2g}, the reference's own {own:.2g}"
    return ""


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
        Content.styled(f"output of {failed.gate.value}:", "$quiet"),
        *(Content.styled(line, "$quiet") for line in tail),
    ]
