"""Other parameters of matrix products."""

from __future__ import annotations

from math import ceil

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.program import Templated
from mtmc_engine.schedule.templates.choose import (
    ROW_ELEMENTS,
    Params,
    power_of_two,
    row_tiles,
    swept_tiles,
    tile_params,
    tiles_of,
)
from mtmc_engine.schedule.templates.space import product_space
from mtmc_engine.schedule.templates.tensors import Product
from mtmc_engine.schedule.templates.trace import Trace

# A share of the inner dimension shorter than this costs more than it saves.
SHORTEST_SHARE = 256
# Tiles that each program of a persistent grid should have, so that starting one costs little.
_TILES_EACH = 2


def product_variants(
    program: Trace, form: Templated, device: DeviceCard
) -> dict[str, list[Params]]:
    """Parameter changes of a product by the action's kind."""
    space = product_space(program)
    product = _product(program)
    rows, columns = power_of_two(space.outer.size), power_of_two(space.reduced.size)
    if space.folded:
        return _row_variants(program, form, device)
    tiles = [
        tile
        for tile in tiles_of(program)
        if tile[0] <= max(32, rows) and tile[1] <= max(32, columns)
    ]
    stages = int(form.params["stages"])
    pipeline: list[Params] = [{"stages": n} for n in (stages + 1, stages - 1) if 2 <= n <= 6]
    pipeline += [{"warps": n} for n in (4, 8)]
    found: dict[str, list[Params]] = {
        "retile": [tile_params(tile) for tile in tiles],
        "pipeline": pipeline,
    }
    plain = not form.params.get("persist") and int(form.params.get("splits", 1)) == 1
    if not product.batched and not product.band and plain:
        longest = inner_size(program) // SHORTEST_SHARE
        found["split"] = [{"splits": n} for n in (2, 4, 8, 16) if n <= longest]
        if product_programs(program, form) >= _TILES_EACH * device.sms:
            found["persist"] = [{"persist": device.sms}]
    if operand_bytes(program) > device.l2_bytes // 2:
        found["reorder"] = [{"group_m": n} for n in (4, 16, 1)]
    if program.specs[product.left].dtype == "float32":
        found["precision"] = [{"dot": "tf32x3"}]
    if not form.params.get("autotune") and plain and len(tiles) > 1:
        found["autotune"] = [{"autotune": True}]
    return found


def _row_variants(program: Trace, form: Templated, device: DeviceCard) -> dict[str, list[Params]]:
    """Parameter changes of a product whose programs reduce its rows."""
    tiles = row_tiles(program, product_space(program), device, ROW_ELEMENTS)
    if form.params.get("sweep"):
        tiles = tuple(dict.fromkeys((*swept_tiles(program), *tiles_of(program)[1:2])))
    stages, deepest = int(form.params["stages"]), {tile[0]: tile[-1] for tile in tiles}
    most = deepest.get(int(form.params["block_m"]), stages)
    found: dict[str, list[Params]] = {
        "retile": [tile_params(tile) for tile in tiles],
        "pipeline": [{"stages": n} for n in (stages + 1, stages - 1) if 2 <= n <= most],
    }
    if program.specs[_product(program).left].dtype == "float32":
        found["precision"] = [{"dot": "tf32x3"}]
    return found


def product_programs(program: Trace, form: Templated) -> int:
    """Tiles of the result, over all matrices and shares."""
    space, params = product_space(program), form.params
    tiles = ceil(space.outer.size / int(params["block_m"]))
    if not params.get("sweep"):
        tiles *= ceil(space.reduced.size / int(params["block_n"]))
    return space.batch.size * tiles * int(params.get("splits", 1))


def inner_size(program: Trace) -> int:
    """The dimension that the product sums over."""
    product = _product(program)
    return program.loads[product.left].shape[product.left_k]


def operand_bytes(program: Trace) -> int:
    """Bytes of both operands."""
    product = _product(program)
    return program.specs[product.left].nbytes + program.specs[product.right].nbytes


def _product(program: Trace) -> Product:
    product = program.products[0].product
    assert product is not None
    return product
