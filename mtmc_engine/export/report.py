"""The report: one HTML page without scripts or outside resources."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mtmc_engine.core.events import StepSummary
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Verdict


def report_html(
    task: Task,
    kernel_source: str,
    steps: Sequence[StepSummary],
    verdict: Verdict | None,
    measurement: Measurement | None,
) -> str:
    """What was optimised, by which steps, how it was proven and how fast it is.

    measurement: the confirmed one of the answer; an estimate is called so wherever it appears.
    """
    shapes = ", ".join(item.label for item in task.inputs)
    sections = [
        f"<h1>{escape(task.name)}</h1>",
        f"<p>{escape(shapes)} &middot; {escape(task.device.name)}</p>",
        _result(measurement),
        "<h2>Steps</h2>",
        _steps(steps),
        "<h2>Proof</h2>",
        _proof(verdict),
        _notes(task),
        "<h2>Kernels</h2>",
        f"<pre><code>{escape(kernel_source)}</code></pre>",
    ]
    body = "\n".join(sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(task.name)}: optimised kernel</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _result(measurement: Measurement | None) -> str:
    if measurement is None:
        return "<p>The answer is the original: no step helped.</p>"
    estimated = measurement.kind == "estimated"
    mark = ' <span class="estimated">estimated</span>' if estimated else ""
    rows = [
        _row("this program", f"{measurement.time_us:.1f} µs{mark}", ""),
        *(
            _row(
                f"against {name}",
                f"{ratio.value:.2f}x{mark}",
                "" if estimated else f"95 % interval {ratio.low:.2f} to {ratio.high:.2f}",
            )
            for name, ratio in measurement.against.items()
        ),
        _row("floor", f"{measurement.floor_us:.1f} µs", "compulsory bytes over peak bandwidth"),
    ]
    note = (
        "<p class='estimated-note'>Nothing was measured: no GPU was present. These figures come "
        "from a roofline model of the named card.</p>"
        if estimated
        else f"<p>{escape(measurement.method)}</p>"
    )
    return f"<table>{''.join(rows)}</table>{note}"


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _steps(steps: Sequence[StepSummary]) -> str:
    header = "<tr><th>step</th><th>action</th><th>verdict</th><th>kept</th><th>time</th></tr>"
    rows = [
        _row(
            str(step.step),
            escape(step.phrase),
            escape(step.verdict),
            "yes" if step.approved else "no",
            _time(step),
        )
        for step in steps
    ]
    return f"<table>{header}{''.join(rows)}</table>" if rows else "<p>None.</p>"


def _time(step: StepSummary) -> str:
    if step.time_us is None:
        return ""
    mark = ' <span class="estimated">estimated</span>' if step.time_kind == "estimated" else ""
    return f"{step.time_us:.1f} µs{mark}"


def _proof(verdict: Verdict | None) -> str:
    if verdict is None:
        return "<p>Nothing to prove: the original runs.</p>"
    rows = [
        _row("✓" if gate.passed else "✗", gate.gate.value, escape(gate.sentence))
        for gate in verdict.gates
    ]
    warnings = "".join(f"<li>{escape(text)}</li>" for text in verdict.warnings)
    listed = f"<ul>{warnings}</ul>" if warnings else ""
    return f"<p>{escape(verdict.reason)}</p><table>{''.join(rows)}</table>{listed}"


def _notes(task: Task) -> str:
    if not task.notes:
        return ""
    return "<h2>Notes</h2><ul>" + "".join(f"<li>{escape(n)}</li>" for n in task.notes) + "</ul>"


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 0.5rem 0 1rem; }
th, td { text-align: left; padding: 0.2rem 1.2rem 0.2rem 0; border-bottom: 1px solid #8884; }
pre { overflow-x: auto; padding: 1rem; border: 1px solid #8884; border-radius: 6px; }
code { font: 13px/1.45 ui-monospace, monospace; }
.estimated { border: 1px dashed currentColor; border-radius: 4px; padding: 0 0.3em;
             font-size: 0.8em; }
"""
