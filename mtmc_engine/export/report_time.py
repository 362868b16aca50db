"""The report's first section: the answer's time beside the others'."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mtmc_engine.core.measurement import Measurement
from mtmc_engine.plan.tree import TreeNode

NAMES = {"previous": "the step before", "original": "the original"}


def result_section(path: Sequence[TreeNode], estimated: bool) -> str:
    """The headline, a bar for each contestant, and how the figures came about."""
    original, answer = path[0].measurement, path[-1].measurement
    if len(path) == 1 or answer is None:
        headline = "<p class='headline'>The original</p><p>No step helped: it is the answer.</p>"
        time = f"<p>{time_words(original.time_us, estimated)}</p>" if original else ""
        return f"<section>{headline}{time}{_note(original, estimated)}</section>"
    times = contestants(original, answer)
    bars = "".join(_bar(name, us, max(times.values()), estimated) for name, us in times.items())
    return (
        f"<section>{_headline(answer, estimated)}"
        f"<div class='bars'>{bars}</div>{_ratios(answer, estimated)}"
        f"{_note(answer, estimated)}</section>"
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


def time_words(time_us: float, estimated: bool) -> str:
    """A time as HTML; an estimate never looks like a measurement."""
    mark = ' <span class="estimated">estimated</span>' if estimated else ""
    return f"{time_us:.1f}&nbsp;µs{mark}"


def _headline(answer: Measurement, estimated: bool) -> str:
    ratio = answer.against.get("original") or answer.against.get("eager")
    if ratio is None:
        return f"<p class='headline'>{time_words(answer.time_us, estimated)}</p>"
    mark = ' <span class="estimated">estimated</span>' if estimated else ""
    return f"<p class='headline'>{ratio.value:.2f}x{mark}</p><p>as fast as the original</p>"


def _bar(name: str, time_us: float, most: float, estimated: bool) -> str:
    share = 100 * time_us / most if most else 0
    kind = " own" if name == "this program" else " floor" if name == "floor" else ""
    shown = escape(NAMES.get(name, name))
    return (
        f"<div class='bar{kind}'><span>{shown}</span><span>{time_words(time_us, estimated)}</span>"
        f"<i style='width:{share:.1f}%'></i></div>"
    )


def _ratios(answer: Measurement, estimated: bool) -> str:
    words = []
    for name, ratio in answer.against.items():
        interval = "" if estimated else f" (95 % interval {ratio.low:.2f} to {ratio.high:.2f})"
        words.append(f"<li>{ratio.value:.2f}x {escape(NAMES.get(name, name))}{interval}</li>")
    return f"<ul>{''.join(words)}</ul>" if words else ""


def _note(measurement: Measurement | None, estimated: bool) -> str:
    floor = "The floor is the compulsory bytes over the card's peak bandwidth."
    if estimated:
        return (
            "<p class='note'>Nothing was measured: no GPU was present. These figures come from a "
            f"roofline model of the named card. {floor}</p>"
        )
    how = f"{escape(measurement.method)}. " if measurement else ""
    return f"<p class='note'>{how}{floor}</p>"
