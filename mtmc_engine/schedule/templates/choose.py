"""The best default template of a group, and its neighbours for the actions."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.graph import Graph
from mtmc_engine.core.program import Param, Templated
from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.templates.space import Space, product_space, space_of
from mtmc_engine.schedule.templates.trace import Trace, trace

LONGEST_ROW = 16384
ELEMENTS_PER_PROGRAM = 4096
# Tiles by preference: block_m, block_n, block_k, warps, stages. The first that fills the card.
HALF_TILES = ((128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (64, 128, 64, 4, 4), (64, 64, 64, 4, 4))
SINGLE_TILES = ((128, 128, 32, 8, 3), (64, 64, 32, 4, 3), (32, 64, 32, 4, 3), (32, 32, 32, 4, 3))


def lowering(graph: Graph, nodes: Sequence[str], device: DeviceCard) -> Templated | None:
    """The default template and parameters for a group; None where it stays a library call."""
    try:
        program = trace(graph, nodes)
        if program.products:
            return _product(program, product_space(program), device)
        space = space_of(program)
    except Unsupported:
        return None
    if not space.folded:
        if space.finished:
            return Templated("pointwise", {"block": 4096, "warps": 8})
        return Templated("pointwise", {"block": 1024, "warps": 4})
    return _rows(program, space, device)


def _product(program: Trace, space: Space, device: DeviceCard) -> Templated:
    operand = program.products[0].product
    assert operand is not None
    single = program.specs[operand.left].dtype == "float32"
    tiles = SINGLE_TILES if single else HALF_TILES
    rows, columns = space.outer.size, space.reduced.size
    for tile in tiles:
        if ceil(rows / tile[0]) * ceil(columns / tile[1]) >= device.sms:
            break
    block_m, block_n, block_k, warps, stages = tile
    return Templated(
        "matmul",
        {
            "block_m": block_m,
            "block_n": block_n,
            "block_k": block_k,
            "group_m": 8,
            "warps": warps,
            "stages": stages,
        },
    )


def _rows(program: Trace, space: Space, device: DeviceCard) -> Templated | None:
    width = power_of_two(space.reduced.size)
    if width > LONGEST_ROW:
        return None
    if space.inner.runs:
        lanes = min(64, max(16, ELEMENTS_PER_PROGRAM // width))
        return Templated("rows", {"rows_per_program": lanes, "warps": row_warps(width * lanes)})
    rows = 1 if width > 512 else min(16, 2048 // width)
    while rows > 1 and space.outer.size // rows < 4 * device.sms:
        rows //= 2
    return Templated("rows", {"rows_per_program": rows, "warps": row_warps(width * rows)})


def row_warps(elements: int) -> int:
    """Warps for a program that holds so many elements: 16 to 32 per thread."""
    return max(1, min(16, power_of_two(elements) // 512))


def power_of_two(size: int) -> int:
    """The next power of two that is at least `size`."""
    return 1 << max(size - 1, 0).bit_length()


def variants(
    graph: Graph, nodes: Sequence[str], form: Templated, device: DeviceCard
) -> dict[str, tuple[dict[str, Param], ...]]:
    """Parameter changes that an action may try, by the action's kind; at most four each."""
    return {}


def tile_code(form: Templated) -> str:
    """The template's size in a few characters: "128x128x32", "b1024", "4 rows"."""
    params = form.params
    if form.template == "matmul":
        return f"{params['block_m']}x{params['block_n']}x{params['block_k']}"
    if form.template == "pointwise":
        return f"b{params['block_size']}"
    if "block_cols" in params:
        return f"c{params['block_cols']}"
    if "block_inner" in params:
        return f"i{params['block_inner']}"
    return f"{params['rows_per_program']} rows" if params["rows_per_program"] != 1 else "1 row"
