"""Regions of Triton source: kernels, loops, loads, dots and launches, with names that stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import libcst as cst

from mtmc_engine.core.program import ByHand, Group, Region, Schedule
from mtmc_engine.schedule.source.code import walk
from mtmc_engine.schedule.source.flow import Flow
from mtmc_engine.schedule.source.listing import Listing, listing_of


def source_schedule(text: str, before: Iterable[Region] = ()) -> Schedule:
    """A group for each kernel that is launched, each with the whole source.

    before: regions of the program that this one was made from; what is still there keeps its
    name, and what is new gets a number behind theirs. Raises UsageError where the source is no
    Python.
    """
    listing = listing_of(text)
    regions = _numbered(_parts(listing), tuple(before))
    launched = {launch.kernel.name for launch in listing.launches}
    names = [region.id for region in regions if region.place in (launched or listing.kernels)]
    groups = tuple(Group(name, (), ByHand(text)) for name in names or ["r1"])
    return Schedule(groups, regions)


def _numbered(parts: Iterable[Region], before: tuple[Region, ...]) -> tuple[Region, ...]:
    known = {region.place: region.id for region in before}
    last = max((int(region.id[1:]) for region in before), default=0)
    found = []
    for part in parts:
        if part.place not in known:
            last += 1
            known[part.place] = f"r{last}"
        found.append(Region(known[part.place], part.label, (), part.place, part.line))
    return tuple(found)


def _parts(listing: Listing) -> Iterator[Region]:
    """Regions in the order in which they are written, without names."""
    counts: Counter[str] = Counter()
    kernels = {kernel.node: kernel for kernel in listing.kernels.values()}
    launches = {launch.call: launch for launch in listing.launches}
    flows: dict[cst.CSTNode, Flow] = {n: Flow(listing, k) for n, k in kernels.items()}
    for node in walk(listing.code.module):
        scope = listing.code.function(node)
        label = ""
        if isinstance(node, cst.FunctionDef) and node in kernels:
            name = kernels[node].name
            yield Region("", name, (), name, listing.code.line(node))
        elif isinstance(node, cst.Call) and node in launches:
            label = f"launch {launches[node].kernel.name}"
        elif scope is not None and scope in flows:
            label = flows[scope].label(node)
        if label:
            place = f"{scope.name.value if scope else ''}/{label}"
            counts[place] += 1
            yield Region("", label, (), f"{place} {counts[place]}", listing.code.line(node))
