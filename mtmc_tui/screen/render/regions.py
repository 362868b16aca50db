"""The regions of a program: where its time goes and how far each is from the roofline."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content

from mtmc_engine.core.measurement import GroupCost
from mtmc_tui.screen.glyphs import Glyphs
from mtmc_tui.screen.model import Node, Snapshot
from mtmc_tui.screen.render.words import bytes_text, clip, percent_text, time_text
from mtmc_tui.screen.view import REGIONS, View, shown_node

NEAR_PEAK = 0.8
FAR_FROM_PEAK = 0.4


@dataclass(frozen=True)
class RegionRow:
    """One region of the program that is shown. `cost` is None where nothing is known."""

    key: str
    label: str
    cost: GroupCost | None


def region_rows(snapshot: Snapshot, view: View) -> list[RegionRow]:
    """Regions of the shown program, in execution order."""
    node = shown_node(snapshot, view)
    costs = costs_of(snapshot, node)
    regions = node.regions if node and node.regions else ()
    if not regions and snapshot.task is not None:
        regions = snapshot.task.regions
    labels = {region.id: region.label for region in regions}
    by_region = {cost.region: cost for cost in costs}
    keys = list(dict.fromkeys([*labels, *(cost.region for cost in costs)]))
    if by_region:
        keys = [key for key in keys if key in by_region]
    wanted = view.filter(REGIONS).lower()
    rows = [RegionRow(key, labels.get(key, ""), by_region.get(key)) for key in keys]
    return [row for row in rows if wanted in f"{row.key} {row.label}".lower()]


def costs_of(snapshot: Snapshot, node: Node | None) -> tuple[GroupCost, ...]:
    """Costs of a program; where they are not known yet, of the nearest program above it that has
    the same regions.
    """
    regions = _names(node)
    while node is not None:
        if regions and _names(node) not in ([], regions):
            return ()
        if node.id in snapshot.costs:
            return snapshot.costs[node.id]
        node = snapshot.nodes.get(node.parent or "")
    return ()


def _names(node: Node | None) -> list[tuple[str, str]]:
    return [(region.id, region.label) for region in node.regions] if node is not None else []


def region_line(row: RegionRow, width: int, signs: Glyphs) -> Content:
    """ "r1 softmax   93 % time  38 % memory", with time and bytes where there is room."""
    name = f"{row.key or 'other':<3} "
    if row.cost is None:
        return Content.assemble((name, "bold"), clip(row.label, width - len(name), signs))
    cost = row.cost
    share = f"{percent_text(cost.share):>5} time"
    peak = f"{percent_text(cost.of_peak):>5} {cost.bound[:7]:<7}"
    more = ""
    if width >= 64:
        about = time_text(cost.time_us, signs, "estimated")
        more = f"  {about:>10}  {bytes_text(cost.bytes_moved):>7}"
    room = max(0, width - len(name) - len(share) - len(peak) - len(more) - 2)
    return Content.assemble(
        (name, "bold"),
        f"{clip(row.label, room, signs):<{room}}",
        share,
        (f" {peak}", _peak_style(cost.of_peak)),
        (f" {more}", "$quiet"),
    )


def _peak_style(of_peak: float) -> str:
    if of_peak >= NEAR_PEAK:
        return "$state-faster"
    return "$state-slower" if of_peak < FAR_FROM_PEAK else ""
