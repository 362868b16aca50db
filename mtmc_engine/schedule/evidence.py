"""Figures that reasons quote: bytes, shares, and what a fusion saves."""

from __future__ import annotations

from collections.abc import Sequence

from mtmc_engine.core.program import Group
from mtmc_engine.schedule.context import Context
from mtmc_engine.schedule.template_cost import outside_bytes


def bytes_text(count: float) -> str:
    """Bytes in the unit that a person would choose: "134 MB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"


def saved_bytes(context: Context, groups: Sequence[Group]) -> int:
    """Bytes that one kernel for these groups moves less than they do now."""
    nodes = context.union(groups)
    now = sum(context.costs[group.region].bytes_moved for group in groups)
    return max(0, now - sum(outside_bytes(context.facts, nodes or ())))


def percent(part: float) -> str:
    """A part of one in whole percent: "38 %"."""
    return f"{part:.0%}".replace("%", " %")


def microseconds(time_us: float) -> str:
    """A time with four digits at most: "37.25 us"."""
    return f"{time_us:.4g} us" if time_us < 1000 else f"{time_us:.0f} us"


def traffic(context: Context, group: Group) -> str:
    """ "r1 (gelu) moves 11 times its compulsory bytes and takes 38 % of the time"."""
    cost = context.costs[group.region]
    least = sum(outside_bytes(context.facts, group.nodes))
    times = cost.bytes_moved / least if least else 1.0
    moved = f"{times:.2g} times its compulsory bytes" if times > 1.05 else bytes_text(least)
    name = f"{group.region} ({context.label(group.nodes)})"
    return f"{name} moves {moved} and takes {percent(cost.share)} of the time"
