"""The default template of a group, with parameters for the card."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.graph import Graph
from mtmc_engine.core.program import Param, Templated
from mtmc_engine.schedule.ops import Unsupported, require
from mtmc_engine.schedule.templates.fit import fitted
from mtmc_engine.schedule.templates.passes import Online, pairs_of, sweeps
from mtmc_engine.schedule.templates.space import Space, resolved
from mtmc_engine.schedule.templates.split import split_form
from mtmc_engine.schedule.templates.trace import Trace

# Elements of a row that one program can hold in registers: 32 a thread in 16 warps.
LONGEST_ROW = 16384
# A scan passes every element through the lanes of its warps: long ones go block by block.
LONGEST_SCAN = 4096
ELEMENTS_PER_PROGRAM = 4096
# Columns of a tile that leave registers for an epilogue.
WIDEST_EPILOGUE = 128
# Columns of a product that one program can hold, and elements of it in each thread: what
# reductions and norms keep beside the accumulator needs as many registers again.
LONGEST_PRODUCT_ROW = 512
ROW_ELEMENTS = 64
# Tiles by preference: block_m, block_n, block_k, warps, stages. The first that fills the card.
HALF_TILES = ((128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (64, 128, 64, 4, 4), (64, 64, 64, 4, 4))
SINGLE_TILES = ((128, 128, 32, 8, 3), (128, 64, 32, 8, 3), (64, 64, 32, 4, 3), (32, 32, 32, 4, 3))
# Deeper ones spill in full float32, where the rows' results live beside the tile.
SWEPT_SINGLE_TILES = ((128, 64, 16, 8, 3), (64, 64, 16, 8, 3), (32, 64, 16, 8, 3))
_TILE_KEYS = ("block_m", "block_n", "block_k", "warps", "stages")

Params = dict[str, Param]


def lowering(graph: Graph, nodes: Sequence[str], device: DeviceCard) -> Templated | None:
    """The default template and parameters for a group; None where it stays a library call."""
    try:
        program, space = fitted(graph, nodes)
        if program.products and space.folded:
            return _whole_rows(program, space, device)
        if program.products:
            return _product(program, space, device, epilogue=len(nodes) > 1)
    except Unsupported:
        return None
    if space.folded:
        return _rows(program, space, device)
    return Templated("pointwise", {"block": 4096, "warps": 8} if space.finished else POINTWISE)


POINTWISE: Params = {"block": 1024, "warps": 4}


def _product(program: Trace, space: Space, device: DeviceCard, *, epilogue: bool) -> Templated:
    rows, columns = space.outer.size, space.reduced.size
    # The accumulator of the widest tile leaves an epilogue no registers: it spills.
    tiles = [tile for tile in tiles_of(program) if not (epilogue and tile[1] > WIDEST_EPILOGUE)]
    for tile in tiles:
        if space.batch.size * ceil(rows / tile[0]) * ceil(columns / tile[1]) >= device.sms:
            break
    return Templated("matmul", {**tile_params(tile), "group_m": 8})


def _whole_rows(program: Trace, space: Space, device: DeviceCard) -> Templated:
    """A product whose programs reduce its rows: whole ones, or in a sweep where they are long.

    Raises Unsupported where neither fits.
    """
    single = tiles_of(program) is SINGLE_TILES
    tiles = row_tiles(program, space, device, ROW_ELEMENTS // 2 if single else ROW_ELEMENTS)
    swept: Params = {}
    if not tiles:
        require(is_swept(program), "rows of a product that are too long for one program")
        tiles, swept = swept_tiles(program), {"sweep": True}
    for tile in tiles:
        if space.batch.size * ceil(space.outer.size / tile[0]) >= device.sms:
            break
    return Templated("matmul", {**tile_params(tile), **swept})


def is_swept(program: Trace) -> bool:
    """Whether one sweep over the columns of a product finds all that leaves the group."""
    wide = set(resolved(program.products[0].axes[-1:]))
    pairs = tuple(pair for pair in pairs_of(program) if isinstance(pair, Online))
    known, merged = sweeps(program, pairs), {pair.total for pair in pairs}
    operands = [fold.operands[0] for fold in program.folds if fold not in merged]
    narrow = all(not wide & set(resolved(o.tensor.value.axes)) for o in program.outputs)
    return narrow and all(known[operand] == 0 for operand in operands)


def swept_tiles(program: Trace) -> tuple[tuple[int, ...], ...]:
    """Tiles of a product that is swept, largest first."""
    if tiles_of(program) is SINGLE_TILES:
        return SWEPT_SINGLE_TILES
    return tuple(tile for tile in HALF_TILES if tile[1] <= WIDEST_EPILOGUE)


def row_tiles(
    program: Trace, space: Space, device: DeviceCard, elements: int
) -> tuple[tuple[int, ...], ...]:
    """Tiles of whole rows that fit the card's shared memory and registers, largest first.

    elements: of the product that each thread holds.
    """
    width = max(16, power_of_two(space.reduced.size))
    if width > LONGEST_PRODUCT_ROW:
        return ()
    # In full float32 a thread keeps as much of the operands as of the result.
    single = tiles_of(program) is SINGLE_TILES
    depth = (32 if single else 64) // (2 if width > 256 else 1)
    found = []
    for rows in (128, 64, 32, 16):
        stage = (rows + width) * depth * (4 if single else 2)
        stages = min(3, device.shared_bytes // stage)
        warps = max(8 if single else 4, rows * width // (32 * elements))
        if stages >= 2 and warps <= 8:
            found.append((rows, width, depth, warps, stages))
    return tuple(found)


def tiles_of(program: Trace) -> tuple[tuple[int, ...], ...]:
    """Tiles that suit the operands' dtype, largest first."""
    product = program.products[0].product
    assert product is not None
    single = program.specs[product.left].dtype == "float32"
    return SINGLE_TILES if single else HALF_TILES


def tile_params(tile: Sequence[int]) -> Params:
    """A tile as parameters of the matmul template."""
    return dict(zip(_TILE_KEYS, tile, strict=True))


def _rows(program: Trace, space: Space, device: DeviceCard) -> Templated:
    width = power_of_two(space.reduced.size)
    scans = any(value.kind == "scan" for value in program.folds)
    shared = split_form(program, space, device)
    if shared is not None and _leaves_idle(space, device):
        return shared
    if space.inner.runs:
        if width * 16 > LONGEST_ROW:
            params: Params = {"block_cols": 32, "rows_per_program": 64, "warps": 8}
            return Templated("rows_loop", {**params, "form": "multi_pass"})
        lanes = min(64, max(16, ELEMENTS_PER_PROGRAM // width))
        return Templated("rows", {"rows_per_program": lanes, "warps": row_warps(width * lanes)})
    if width > (LONGEST_SCAN if scans else LONGEST_ROW):
        return Templated(
            "rows_loop", {"block_cols": 2048 if scans else 4096, "form": "multi_pass", "warps": 8}
        )
    rows = 1 if width > 512 else min(16, 2048 // width)
    while rows > 1 and space.outer.size // rows < 4 * device.sms:
        rows //= 2
    return Templated("rows", {"rows_per_program": rows, "warps": row_warps(width * rows)})


def _leaves_idle(space: Space, device: DeviceCard) -> bool:
    """Whether programs of whole rows would fill less than half of the card, for long."""
    programs = space.outer.size * ceil(space.inner.size / 64)
    return 2 * programs <= device.sms and space.reduced.size >= 8192


def row_warps(elements: int) -> int:
    """Warps for a program that holds so many elements: 16 a thread, up to 16 warps."""
    return max(1, min(16, power_of_two(elements) // 512))


def power_of_two(size: int) -> int:
    """The next power of two that is at least `size`."""
    return 1 << max(size - 1, 0).bit_length()
