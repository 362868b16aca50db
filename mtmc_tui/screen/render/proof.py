"""The gates of a candidate, what they found, and the verdict in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeGuard

from textual.content import Content

from mtmc_engine.core.verdict import Gate, GateResult
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import Node, Snapshot
from mtmc_tui.screen.render.verdicts import verdict_words
from mtmc_tui.screen.render.words import Part, bytes_text, packed, percent_text
from mtmc_tui.screen.view import View, shown_node

LOG_LINES = 200
FACTS: tuple[tuple[str, str, Callable[[int], str]], ...] = (
    ("registers", "registers", str),
    ("shared_bytes", "shared", bytes_text),
    ("spill_bytes", "spills", str),
)
WORTH_SAYING_S = 1.0


def proof_lines(snapshot: Snapshot, view: View, width: int) -> list[Content]:
    """Gates, facts, verdict, warnings, then the end of the failed gate's own output."""
    node = shown_node(snapshot, view)
    if node is None:
        return [Content.styled("no program yet", "$quiet")]
    if node.parent is None:
        return [Content.styled("the original: every candidate is proven against it", "$quiet")]
    signs = view.glyphs
    lines = []
    if node.gates or snapshot.proving(node):
        lines += packed(gate_parts(node, snapshot, signs), " ", width)
    lines += packed([(fact, "") for fact in facts(node)], f" {signs.dot} ", width)
    if node.verdict is not None:
        lines.append(_verdict_line(node, view.glyphs))
        lines += [
            Content.assemble((f"{view.glyphs.warning} ", "$state-slower"), warning)
            for warning in node.verdict.warnings
        ]
    if node.reason:
        lines.append(Content.assemble(("decided: ", "$quiet"), node.reason))
    return [*lines, *_log(node)]


def gate_parts(node: Node, snapshot: Snapshot, signs: Glyphs) -> list[Part]:
    """ "✓ parse", "✓ compile 1.2 s", "› values 23/41": one mark a gate, in order."""
    by_gate = {result.gate: result for result in node.gates}
    parts: list[Part] = []
    for gate in Gate:
        result = by_gate.get(gate)
        if result is not None:
            parts.append(_finished(result, signs))
        elif node.gate == gate:
            words = f"{signs.running} {gate.value}{_count(snapshot)}"
            parts.append((words, "bold $state-running"))
        elif node.verdict is None:
            parts.append((f"{signs.proposed} {gate.value}", "$quiet"))
    return parts


def _finished(result: GateResult, signs: Glyphs) -> Part:
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


def facts(node: Node) -> list[str]:
    """Registers, shared memory and spills of the largest kernel, and the error; what is known."""
    told = node.evidence(Gate.COMPILE).get("kernels")
    kernels = [kernel for kernel in told if isinstance(kernel, dict)] if _is_list(told) else []
    found = [f"{len(kernels)} kernels"] if len(kernels) > 1 else []
    for key, name, write in FACTS:
        numbers = [kernel[key] for kernel in kernels if isinstance(kernel.get(key), int)]
        if numbers:
            found.append(f"{name} {write(max(numbers))}")
    error = _error(node.evidence(Gate.VALUES))
    return [*found, error] if error else found


def _is_list(told: object) -> TypeGuard[list[object]]:
    return isinstance(told, list)


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
