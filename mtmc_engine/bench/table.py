"""Totals as plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mtmc_engine.bench.line import ORIGINAL, Line
from mtmc_engine.bench.totals import Speeds, Totals, totals_of, worst_of

_COLUMNS = (
    ("family", 12),
    ("tasks", 6),
    ("failed", 7),
    ("proven", 7),
    ("faster", 7),
    ("own>=1/2", 9),
    ("floor", 6),
    ("| eager: mean", 14),
    ("median", 8),
    ("worst", 8),
    ("| compile: mean", 16),
    ("median", 8),
    ("worst", 8),
    (">=0.98", 7),
    ("| s/task", 9),
)
_MOST_PHASES = 12


def table(lines: Sequence[Line]) -> str:
    """The totals by family, the ten worst tasks, and where the time went."""
    if not lines:
        return "No task has a line yet."
    estimated = not any(line.time_kind == "measured" for line in lines)
    parts = [_head(lines, estimated), _families(totals_of(lines), estimated)]
    parts.append(_worst(lines))
    parts.append(_time(lines))
    return "\n\n".join(parts)


def _head(lines: Sequence[Line], estimated: bool) -> str:
    devices = ", ".join(dict.fromkeys(line.device for line in lines))
    ways = ", ".join(dict.fromkeys(f"{line.protocol} {line.precision}" for line in lines))
    how = "ESTIMATED for" if estimated else "measured on"
    note = "; values in the interpreter, ~ marks estimates" if estimated else ""
    few = sum(line.time_kind == "estimated" for line in lines)
    if few and not estimated:
        note = f"; {few} could not be measured and are in no mean"
    return f"{len(lines)} tasks, {ways}, {how} {devices}{note}"


def _families(totals: Sequence[Totals], estimated: bool) -> str:
    rows = ["".join(name.rjust(width) for name, width in _COLUMNS)]
    for one in totals:
        cells = (
            one.family,
            str(one.tasks),
            str(one.failed),
            _percent(one.proven),
            _percent(one.faster),
            _percent(one.own_half),
            _percent(one.floor_share),
            *_speeds(one.eager, estimated)[:3],
            *_speeds(one.compiled, estimated),
            f"{one.seconds:.1f}",
        )
        widths = (width for _, width in _COLUMNS)
        rows.append("".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)))
    return "\n".join(rows)


def _speeds(speeds: Speeds | None, estimated: bool) -> tuple[str, str, str, str]:
    if speeds is None:
        return ("-",) * 4
    mark = "~" if estimated else ""
    values = (speeds.geometric_mean, speeds.median, speeds.worst)
    mean, middle, worst = (f"{mark}{value:.2f}" for value in values)
    return mean, middle, worst, _percent(speeds.at_least)


def _worst(lines: Sequence[Line]) -> str:
    return "\n".join(["the worst:", *(_told(line) for line in worst_of(lines))])


def told(line: Line) -> str:
    """One task as a line of text: verdict, ratios, and the reason where it has none."""
    return _told(line).strip()


def _told(line: Line) -> str:
    mark = "~" if line.time_kind == "estimated" else ""
    ratios = ", ".join(f"{mark}{ratio.value:.2f}x {name}" for name, ratio in line.against.items())
    kept = sum(step.state == "kept" for step in line.steps)
    steps = f"{kept} of {len(line.steps)} steps kept, {line.seconds:.0f} s"
    fine = line.against and line.proven and line.verdict != ORIGINAL
    said = "" if fine else f": {line.reason}"
    return f"  {line.task:<36} {line.verdict:<10} {ratios or '-'}; {steps}{said}"


def _time(lines: Sequence[Line]) -> str:
    phases: Counter[str] = Counter()
    for line in lines:
        phases.update(line.phases)
    parts = [f"{name} {seconds:.0f}" for name, seconds in phases.most_common(_MOST_PHASES)]
    steps = sum(len(line.steps) for line in lines)
    locked = sum(line.gpu_s for line in lines)
    return f"seconds by phase: {', '.join(parts)}; {steps} steps, {locked:.0f} s of locked GPU"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
