"""The report's first section: the answer's time beside the others'."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mtmc_engine.core.measurement import Measurement, TimeKind
from mtmc_engine.plan.tree import TreeNode

NAMES = {"previous": "the step before", "original": "the original"}


def result_section(path: Sequence[TreeNode], kind: TimeKind) -> str:
    """The headline, a bar for each contestant, and how the figures came about."""
    original, answer = path[0].measurement, path[-1].measurement
    if len(path) > 1 and answer is None:
        headline = "<p class='headline'>Not timed</p><p>It was kept by hand.</p>"
        return f"<section>{headline}{_note(None, kind)}</section>"
    if len(path) == 1 or answer is None:
        headline = "<p class='headline'>The original</p><p>No step was kept: it is the answer.</p>"
        time = f"<p>{time_words(original.time_us, kind)}</p>" if original else ""
        return f"<section>{headline}{time}{_note(original, kind)}</section>"
    times = contestants(original, answer)
    bars = "".join(_bar(name, us, max(times.values()), kind) for name, us in times.items())
    return (
        f"<section>{_headline(answer, kind)}"
        f"<div class='bars'>{bars}</div>{_ratios(answer, kind)}"
        f"{_note(answer, kind)}</section>"
    )


def contestants(original: Measurement | None, answer: Measurement) -> dict[str, float]:
    """Time of each by name, microseconds, slowest baseline first, then the answer and the floor."""
    measured = {one.name: one.time_us for one in answer.contestants}
    times = {
        name: measured.get(name, ratio.value * answer.time_us)
        for name, ratio in answer.against.items()
    }
    if original is not None and "original" not in times:
        times["original"] = original.time_us
    ordered = dict(sorted(times.items(), key=lambda item: -item[1]))
    return {**ordered, "this program": answer.time_us, "floor": answer.floor_us}


def time_words(time_us: float, kind: TimeKind) -> str:
    """A time as HTML; what was not measured never looks like a measurement."""
    return f"{time_us:.1f}&nbsp;µs{_mark(kind)}"


def _mark(kind: TimeKind) -> str:
    return "" if kind == "measured" else f' <span class="unmeasured">{kind}</span>'


def _headline(answer: Measurement, kind: TimeKind) -> str:
    ratio = answer.against.get("original") or answer.against.get("eager")
    if ratio is None:
        return f"<p class='headline'>{time_words(answer.time_us, kind)}</p>"
    return f"<p class='headline'>{ratio.value:.2f}x{_mark(kind)}</p><p>as fast as the original</p>"


def _bar(name: str, time_us: float, most: float, kind: TimeKind) -> str:
    share = 100 * time_us / most if most else 0
    look = " own" if name == "this program" else " floor" if name == "floor" else ""
    look += "" if kind == "measured" else " hollow"
    shown = escape(NAMES.get(name, name))
    return (
        f"<div class='bar{look}'><span>{shown}</span><span>{time_words(time_us, kind)}</span>"
        f"<i style='width:{share:.1f}%'></i></div>"
    )


def _ratios(answer: Measurement, kind: TimeKind) -> str:
    words = []
    for name, ratio in answer.against.items():
        interval = (
            "" if kind == "estimated" else f" (95 % interval {ratio.low:.2f} to {ratio.high:.2f})"
        )
        words.append(f"<li>{ratio.value:.2f}x {escape(NAMES.get(name, name))}{interval}</li>")
    return f"<ul>{''.join(words)}</ul>" if words else ""


def _note(measurement: Measurement | None, kind: TimeKind) -> str:
    if measurement is None:
        return "<p class='note'>Nothing was timed: no GPU was present.</p>"
    floor = "The floor is the compulsory bytes over the card's peak bandwidth."
    if kind == "estimated":
        return (
            "<p class='note'>Nothing was measured: no GPU was present. These figures come from a "
            f"roofline model of the named card. {floor}</p>"
        )
    how = f"{escape(measurement.method)}. "
    if kind == "replayed":
        how = f"Nothing was measured here: these figures are {how}"
    return f"<p class='note'>{how}{floor}</p>"
