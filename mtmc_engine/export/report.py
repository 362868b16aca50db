"""The report: one HTML page without scripts or outside resources."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

from mtmc_engine.core.events import AttemptSummary, StepSummary
from mtmc_engine.core.measurement import TimeKind
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Gate, GateResult, Verdict
from mtmc_engine.export.report_diff import diff_table
from mtmc_engine.export.report_style import STYLE
from mtmc_engine.export.report_time import result_section, time_words
from mtmc_engine.plan.tree import TreeNode

CARD_FACTS = {
    "sms": "multiprocessors",
    "bandwidth_gbs": "peak bandwidth, GB/s",
    "l2_bytes": "L2, bytes",
    "shared_bytes": "shared memory of a program, bytes",
}


def report_html(
    task: Task, path: Sequence[TreeNode], steps: Sequence[StepSummary], kind: TimeKind
) -> str:
    """What was optimised, by which steps and why, how it was proven and how fast it is.

    path: the programs from the original to the answer; the original alone where no step helped.
    kind: of the times; those that were not measured are called so wherever they appear.
    """
    answer = path[-1]
    sections = [
        _head(task),
        result_section(path, kind),
        _section("Steps", _steps(steps)),
        _section("What each kept step changed", _changes(path)),
        _section("Proof", _proof(answer.verdict)),
        _section("Device", _device(task, answer)),
        _section("Notes", _listed(task.notes)),
        _section("Program", f"<pre><code>{escape(answer.program.source)}</code></pre>"),
    ]
    body = "\n".join(filter(None, sections))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(task.name)}: optimised kernel</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _head(task: Task) -> str:
    shapes = ", ".join(item.label for item in task.inputs)
    dtypes = ", ".join({spec.dtype: None for item in task.inputs for spec in item.tensors})
    facts = " &middot; ".join(map(escape, filter(None, (shapes, dtypes, task.device.name))))
    return f"<header><h1>{escape(task.name)}</h1><p>{facts}</p></header>"


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>\n{content}</section>" if content else ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls by itself where the page is narrow; cells are HTML."""
    names = "".join(f"<th>{name}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    top = f"<thead><tr>{names}</tr></thead>" if head else ""
    return f'<div class="wide"><table>{top}<tbody>{lines}</tbody></table></div>'


def _steps(steps: Sequence[StepSummary]) -> str:
    rows: list[list[str]] = []
    for step in steps:
        mark = (
            '<b class="good">✓&nbsp;kept</b>' if step.approved else '<span class="weak">no</span>'
        )
        time = ""
        if step.time_us is not None and step.time_kind is not None:
            time = time_words(step.time_us, step.time_kind)
        what = f"{escape(step.phrase)}<small>{escape(step.reason)}</small>"
        verdict = escape(step.verdict)
        rows.append([str(step.step), what, verdict, mark, time, escape(step.coder)])
        rows += [_attempt(one, step) for one in step.attempts if one.node != step.node]
    head = ("step", "action, and why it was decided so", "verdict", "kept", "time", "coder")
    return table(head, rows) if rows else "<p>None was tried.</p>"


def _attempt(one: AttemptSummary, step: StepSummary) -> list[str]:
    """Another candidate of a step: a failed one, or a sample that was not chosen."""
    sample = f", sample {one.sample + 1}" if any(a.sample for a in step.attempts) else ""
    name = f'<span class="weak">attempt {one.attempt}{sample}</span>'
    verdict = escape(one.verdict or "not judged")
    return ["", f"{name}<small>{escape(one.reason)}</small>", verdict, "", "", escape(one.coder)]


def _changes(path: Sequence[TreeNode]) -> str:
    parts = []
    for before, after in pairwise(path):
        assert after.action is not None
        why = f"<p>{escape(after.action.reason)}</p>" if after.action.reason else ""
        found = f"<p>{escape(after.verdict.reason)}</p>" if after.verdict else ""
        opened = " open" if len(path) == 2 else ""
        parts.append(
            f"<details{opened}><summary>{escape(after.action.phrase)}</summary>{why}{found}"
            f"{diff_table(before.program.source, after.program.source)}</details>"
        )
    return "\n".join(parts)


def _proof(verdict: Verdict | None) -> str:
    if verdict is None:
        return "<p>Nothing to prove: the original runs.</p>"
    rows = [
        [
            '<b class="good">✓</b>' if gate.passed else '<b class="bad">✗</b>',
            gate.gate.value,
            escape(gate.sentence),
            f"{gate.seconds:.1f}&nbsp;s",
        ]
        for gate in verdict.gates
    ]
    by_gate = {gate.gate: gate for gate in verdict.gates}
    return "\n".join(
        [
            f"<p>{escape(verdict.reason)}</p>",
            table((), rows),
            _kernels(by_gate.get(Gate.COMPILE)),
            _cases(by_gate.get(Gate.VALUES)),
            _listed(verdict.warnings),
        ]
    )


def _kernels(gate: GateResult | None) -> str:
    names = ("kernel", "configuration", "registers", "spill_bytes", "shared_bytes")
    found = [one for one in (gate.evidence.get("kernels", []) if gate else []) if one]
    if not found:
        return ""
    rows = [[escape(str(one.get(name, ""))) for name in names] for one in found]
    return table(("kernel", "configuration", "registers", "spilled B", "shared B"), rows)


def _cases(gate: GateResult | None) -> str:
    """Every case of the values gate: shapes, then layout or distribution."""
    names = gate.evidence.get("names", []) if gate else []
    if not names:
        return ""
    listed = "".join(f"<li>{escape(str(name))}</li>" for name in names)
    summary = f"{len(names)} cases against the reference in float64"
    return f'<details><summary>{summary}</summary><ul class="cases">{listed}</ul></details>'


def _device(task: Task, answer: TreeNode) -> str:
    card = task.device
    rows = [["card", escape(card.name)], ["compute capability", f"sm_{card.arch}"]]
    for name, words in CARD_FACTS.items():
        rows.append([words, f"{getattr(card, name):,.0f}".replace(",", " ")])
    if answer.measurement is not None:
        rows.append(["how times came about", escape(answer.measurement.method)])
        rows += _facts(answer.measurement.device)
    return table((), rows)


def _facts(facts: dict[str, Any]) -> list[list[str]]:
    return [[escape(name.replace("_", " ")), escape(str(value))] for name, value in facts.items()]


def _listed(sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""
