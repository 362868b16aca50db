"""A few configurations of a product, measured where it first runs with sizes of a kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mtmc_engine.core.program import Param
from mtmc_engine.schedule.render.unit import Launch, Unit
from mtmc_engine.schedule.templates.choose import tile_params, tiles_of

# Configurations at most, the present one first.
MOST = 5


def tuned(unit: Unit, params: Mapping[str, Param], launch: Launch) -> Launch:
    """The launch with its block sizes, warps and stages left to Triton's tuner."""
    present = {name: params[name] for name in tile_params((0,) * 5)}
    others = [tile_params(tile) for tile in tiles_of(unit.program)]
    configurations = [present, *(other for other in others if other != present)][:MOST]
    lines = ["@triton.autotune(", "    configs=["]
    for each in configurations:
        sizes = ", ".join(
            f'"BLOCK_{side}": {each[f"block_{side.lower()}"]}' for side in ("M", "N", "K")
        )
        lines += [
            "        triton.Config(",
            f'            {{{sizes}, "GROUP_M": {params["group_m"]}}},',
            f"            num_warps={each['warps']},",
            f"            num_stages={each['stages']},",
            "        ),",
        ]
    lines += [
        "    ],",
        '    key=["M", "N", "K"],',
        ")",
        '@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})',
    ]
    setup = []
    for line in launch.setup:
        if not line.startswith("grid = "):
            setup.append(line)
            continue
        grid = line.removeprefix("grid = ")
        for side in ("M", "N"):
            grid = grid.replace(f"BLOCK_{side}", f'meta["BLOCK_{side}"]')
        setup += [
            "",
            "def grid(meta: dict[str, int]) -> tuple[int, ...]:",
            f"    return {grid}",
            "",
        ]
    return replace(launch, setup=tuple(setup), options={}, head=(), tuned=tuple(lines))
