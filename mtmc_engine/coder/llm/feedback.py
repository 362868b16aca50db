"""From a failed gate to the shortest evidence that helps to repair the candidate."""

from __future__ import annotations

from typing import Any

from mtmc_engine.coder.seam import Feedback
from mtmc_engine.core.verdict import Class, Gate, GateResult, Verdict

_MEMORY = frozenset({Class.RESOURCES, Class.OOM, Class.ILLEGAL_ACCESS})
_COMPILE = frozenset({Gate.PARSE, Gate.IMPORT, Gate.COMPILE})
_LINE_CHARACTERS = 240
_MOST_CHARACTERS = 1600
_LOG_LINES = 8
_CASES_NAMED = 5


def feedback_of(verdict: Verdict, source: str, coder: str = "") -> Feedback | None:
    """What a failed candidate teaches; None where it is proven or no gate ran."""
    if verdict.proven or not verdict.gates:
        return None
    last = verdict.gates[-1]
    return Feedback(
        repair=repair_of(verdict.verdict, last.gate),
        gate=last.gate,
        verdict=verdict.verdict,
        sentence=last.sentence,
        source=source,
        log=last.log,
        facts=facts_of(last, source),
        coder=coder,
    )


def repair_of(verdict: Class, gate: Gate) -> str:
    """The repair that a failed gate asks for: "fix_compile", "fix_memory" or "fix_math"."""
    if verdict in _MEMORY:
        return "fix_memory"
    return "fix_compile" if gate in _COMPILE else "fix_math"


def facts_of(result: GateResult, source: str) -> tuple[str, ...]:
    """The evidence of a failed gate, most useful first, one fact each.

    The candidate's line and its text, the compiler's last words, the launch that did not fit,
    the first wrong element with what was expected there, the cases that fail. Where the gate
    has none of these, the end of its log.
    """
    evidence = result.evidence
    facts = [
        *_place(evidence, source),
        *_message(evidence),
        *_launch(evidence),
        *_accesses(evidence),
        *_wrong_value(evidence),
        *_cases(evidence),
        *_other(evidence),
    ]
    return _bounded(list(dict.fromkeys(facts)) or _last_lines(result.log))


def _place(evidence: dict[str, Any], source: str) -> list[str]:
    line = evidence.get("line") or 0
    lines = source.splitlines()
    return [f"line {line}: {lines[line - 1].strip()}"] if 0 < line <= len(lines) else []


def _message(evidence: dict[str, Any]) -> list[str]:
    """The last lines of a message: compilers say at the end what is wrong."""
    return _last_lines(str(evidence.get("error") or "")) if _is_text(evidence, "error") else []


def _launch(evidence: dict[str, Any]) -> list[str]:
    if not evidence.get("kernel"):
        return []
    fact = f"launch: {evidence['kernel']} on grid {evidence.get('grid', [])}"
    fact += f" with {evidence['configuration']}" if evidence.get("configuration") else ""
    shared = evidence.get("shared_bytes")
    return [f"{fact}, {shared} bytes of shared memory" if shared else fact]


def _accesses(evidence: dict[str, Any]) -> list[str]:
    return [str(overrun) for overrun in list(evidence.get("overruns", ()))[:2]]


def _wrong_value(evidence: dict[str, Any]) -> list[str]:
    if "expected" not in evidence:
        return []
    case = f"input shapes {evidence.get('shape', [])}, {evidence.get('layout', 'contiguous')}"
    if evidence.get("distribution"):
        case += f", {evidence['distribution']}"
    if evidence.get("call", 1) > 1:
        case += f", call {evidence['call']} on the same object"
    facts = [f"case {evidence.get('case', '')}: {case}"]
    where = evidence.get("index")
    at = f"output {evidence['output']} " if evidence.get("output") else ""
    at += f"at index {where}" if where else "of the result"
    facts.append(f"{at}: expected {evidence['expected']}, actual {evidence['actual']}")
    if evidence.get("wrong_elements"):
        facts.append(
            f"{evidence['wrong_elements']} elements are wrong; largest error "
            f"{evidence.get('error', 0.0):.3g}, allowed {evidence.get('bound', 0.0):.3g}, "
            f"the reference's own {evidence.get('reference_error', 0.0):.3g}"
        )
    if evidence.get("note"):
        facts.append(str(evidence["note"]))
    return facts


def _cases(evidence: dict[str, Any]) -> list[str]:
    failing = list(evidence.get("failing", ()))
    if not failing:
        return []
    named = ", ".join(failing[:_CASES_NAMED])
    more = f" and {len(failing) - _CASES_NAMED} more" if len(failing) > _CASES_NAMED else ""
    return [f"cases that fail: {named}{more} ({evidence.get('cases', '')} pass)"]


def _other(evidence: dict[str, Any]) -> list[str]:
    """Facts of the integrity gate, and what else went wrong."""
    facts = []
    if "own_share" in evidence:
        facts.append(f"own kernels have {evidence['own_share']:.0%} of the device time")
    if evidence.get("library_kernels_us"):
        facts.append(
            f"library kernels that ran: {', '.join(list(evidence['library_kernels_us'])[:4])}"
        )
    if evidence.get("also"):
        facts.append(f"also: {evidence['also']}")
    return facts


def _is_text(evidence: dict[str, Any], key: str) -> bool:
    """The judge's "error" is a number, the compiler's a message."""
    return isinstance(evidence.get(key), str)


def _last_lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return lines[-_LOG_LINES:]


def _bounded(facts: list[str]) -> tuple[str, ...]:
    kept: list[str] = []
    room = _MOST_CHARACTERS
    for fact in facts:
        clipped = fact if len(fact) <= _LINE_CHARACTERS else fact[: _LINE_CHARACTERS - 1] + "…"
        room -= len(clipped)
        if room < 0:
            break
        kept.append(clipped)
    return tuple(kept)
