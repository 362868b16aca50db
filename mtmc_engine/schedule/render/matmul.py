"""Tiled matrix products with an epilogue: pointwise, or over whole rows of the product."""

from __future__ import annotations

from collections.abc import Mapping

from mtmc_engine.core.program import Param
from mtmc_engine.schedule.ops import require
from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.expressions import Text, number
from mtmc_engine.schedule.render.frame import Frame, Walk
from mtmc_engine.schedule.render.rows import block_sizes
from mtmc_engine.schedule.render.split_product import split_product
from mtmc_engine.schedule.render.swept_product import swept_product
from mtmc_engine.schedule.render.tuned import tuned
from mtmc_engine.schedule.render.unit import (
    GroupText,
    Launch,
    Unit,
    assemble,
    kernel_text,
    launched,
)
from mtmc_engine.schedule.templates.lanes import masked_lanes
from mtmc_engine.schedule.templates.tensors import Product

_TILES = ("tiles_m = tl.cdiv(M, BLOCK_M)", "tiles_n = tl.cdiv(N, BLOCK_N)")
# Grids are limited to 65535 programs on their second and third axes.
_BATCH = (
    "batch = tl.program_id(2).to(tl.int64) * tl.num_programs(1) + tl.program_id(1)",
    "if batch >= n_batch:",
    "    return",
)
_PERSIST = "for program in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):"
_SHARE_KS = "share_ks = first.to(tl.int64) + ks\n"
# Tiles beyond the diagonal of a triangle are zero: the sum leaves them out.
_LOWER = "min(K, (tile_m + 1) * BLOCK_M)"
_UPPER = "first = tile_m * BLOCK_M // BLOCK_K * BLOCK_K\n" + _SHARE_KS
_BANDED = {
    "lower": "    a = tl.where(k + ks[None, :] <= rows, a, 0.0)\n",
    "upper": "    a = tl.where(k + ks[None, :] >= rows, a, 0.0)\n",
}
_TILE = """\
# Neighbouring programs share GROUP_M rows of tiles, so that their operands meet in L2.
group = {program} // (GROUP_M * tiles_n)
within = {program} % (GROUP_M * tiles_n)
group_rows = min(tiles_m - group * GROUP_M, GROUP_M)
tile_m = group * GROUP_M + within % group_rows
tile_n = within // group_rows
"""
_COLS = "cols = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]"
# One program has all columns, or sweeps over them, so that it can reduce its rows.
_ALL_COLS = "cols = tl.arange(0, BLOCK_N)[None, :]"
_SWEPT_COLS = "cols = start + tl.arange(0, BLOCK_N)[None, :]"
_ROW_MASK = "row_mask = rows < M"
_PROLOGUE = """\
{tile}\
rows = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
{cols}
row_mask = rows < M
col_mask = cols < N
ks = tl.arange(0, BLOCK_K)
{share_ks}
a_ptrs = {a_base} + rows * {a}_row_stride + {ks}[None, :] * {a}_k_stride
b_ptrs = {b_base} + {ks}[:, None] * {b_k}_k_stride + cols * {b_k}_col_stride
acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
for k in range({first}, {last}, BLOCK_K):
    if EVEN_K:
        a = tl.load(a_ptrs, mask=row_mask, other=0.0)
        b = tl.load(b_ptrs, mask=col_mask, other=0.0)
    else:
        a = tl.load(a_ptrs, mask=row_mask & (ks[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=col_mask & (ks[:, None] < K - k), other=0.0)
{banded}    acc = tl.dot(a, b, acc{precision})
    a_ptrs += BLOCK_K * {a}_k_stride
    b_ptrs += BLOCK_K * {b_k}_k_stride
"""


def render_matmul(unit: Unit, params: Mapping[str, Param], precision: str) -> GroupText:
    """One kernel: a tile of the product per program, the rest of the group on the tile.

    precision: of float32 products, "ieee" or "tf32"; the parameter "dot" overrides it.
    """
    value = unit.program.products[0]
    frame, launch = _frame(unit, params, _product(unit))
    lines = product_lines(unit, params, precision)
    if int(params.get("splits", 1)) > 1:
        require(not _product(unit).batched, "a shared product of many matrices")
        return split_product(unit, params, [*_TILES, *lines], launch)
    if params.get("sweep"):
        at = lines.index(_SWEPT_COLS)
        tile = [line for line in lines[at:] if line != _ROW_MASK]
        return swept_product(unit, frame, launch, [*lines[:at], _ROW_MASK], tile)
    if params.get("autotune"):
        launch = tuned(unit, params, launch)
    lanes = masked_lanes(unit.inside, unit.folds, unit.space.reduced.axes)
    body = Body(unit.program, frame, unit.tensors, unit.names, lanes)
    body.texts[value] = Text("acc")
    if value in lanes.guarded:
        held = number(lanes.guarded[value]).text
        body.lines.append(f"acc = tl.where(col_mask, acc, {held})")
    body.emit(unit.inside)
    unit.store_all(body)
    if unit.space.folded:
        return assemble(unit, frame, body, launch, lines)
    if not params.get("persist") or _product(unit).batched:
        return assemble(unit, frame, body, launch, [*_TILES, *lines])
    kernel = kernel_text(unit, frame, body, launch, prologue=lines, around=(*_TILES, _PERSIST))
    return launched(unit, [kernel])


def _product(unit: Unit) -> Product:
    product = unit.program.products[0].product
    assert product is not None
    return product


def product_lines(unit: Unit, params: Mapping[str, Param], precision: str) -> list[str]:
    """Statements that compute one tile of the product, or of a share of it, as `acc`."""
    product = _product(unit)
    shared = int(params.get("splits", 1)) > 1
    whole = unit.space.folded
    require(not (shared and product.band), "a shared product with a triangle")
    plain = not any(params.get(form) for form in ("persist", "autotune")) and not shared
    require(plain or not whole, "another form of a product with whole rows")
    starts_late = shared or product.band == "upper"
    persists = params.get("persist") and not product.batched
    program = "program" if persists else "tl.program_id(0)"
    left, right = unit.tensors[product.left], unit.tensors[product.right]
    right_name = right if left != right else f"{right}_right"
    single = unit.program.specs[product.left].dtype == "float32"
    lines = (
        _PROLOGUE.replace("{share_ks}\n", _SHARE_KS if shared else _UPPER if starts_late else "")
        .format(
            tile="tile_m = tl.program_id(0)\n" if whole else _TILE.format(program=program),
            cols=_SWEPT_COLS if params.get("sweep") else _ALL_COLS if whole else _COLS,
            banded=_BANDED.get(product.band, ""),
            ks="share_ks" if starts_late else "ks",
            first="first" if starts_late else "0",
            last="last" if shared else _LOWER if product.band == "lower" else "K",
            a=left,
            b=right,
            b_k=right_name,
            a_base=f"{left}_ptr + batch * {left}_batch_stride"
            if product.batched
            else f"{left}_ptr",
            b_base=f"{right}_ptr + batch * {right_name}_batch_stride"
            if product.batched
            else f"{right}_ptr",
            precision=f', input_precision="{params.get("dot", precision)}"' if single else "",
        )
        .splitlines()
    )
    return [*_BATCH, *lines] if product.batched else lines


def _frame(unit: Unit, params: Mapping[str, Param], product: Product) -> tuple[Frame, Launch]:
    space = unit.space
    blocks = {space.batch: "n_batch"} if product.batched else {}
    runs, texts = block_sizes(unit, {**blocks, space.outer: "M", space.reduced: "N"})
    walks = [
        Walk(space.outer, Text("rows"), "M", "row_mask"),
        Walk(space.reduced, Text("cols"), "N", "col_mask"),
    ]
    if product.batched:
        walks.insert(0, Walk(space.batch, Text("batch"), "n_batch"))
    frame = Frame(
        walks,
        [("mask", "mask = row_mask & col_mask")],
        {("row_mask", "col_mask"): "mask"},
        "axis=1, keep_dims=True",
        runs,
    )
    left = unit.tensors[product.left]
    rank = len(unit.program.loads[product.left].dims)
    texts["K"] = f"{left}.shape[{-1 if product.left_k == rank - 1 else product.left_k}]"
    whole = unit.space.folded
    constexprs = ["BLOCK_M", "BLOCK_N", "BLOCK_K", *(["GROUP_M"] if not whole else [])]
    constants = {"EVEN_K": "K % BLOCK_K == 0", **{name: name for name in constexprs}}
    if whole and not params.get("sweep"):
        constants["BLOCK_N"] = "max(triton.next_power_of_2(N), 16)"
    names = [name for name in constexprs if constants[name] == name]
    values = ", ".join(str(params[name.lower()]) for name in names)
    tiles = "triton.cdiv(M, BLOCK_M)" + " * triton.cdiv(N, BLOCK_N)" * (not whole)
    grid = f"grid = ({tiles},)"
    if product.batched:
        grid = f"grid = ({tiles}, min(n_batch, 65535), triton.cdiv(n_batch, 65535))"
    elif params.get("persist"):
        grid = f"grid = (min({tiles}, {params['persist']}),)"
    return frame, Launch(
        "grid",
        constants,
        {"num_warps": params["warps"], "num_stages": params["stages"]},
        texts,
        (*_joined(unit, product), grid),
        _strides(unit, product),
        (f"{', '.join(names)} = {values}",),
    )


def _joined_dims(unit: Unit, name: str, product: Product) -> int:
    """How many dimensions of an operand disappear when leading ones are joined."""
    return len(unit.program.loads[name].dims) - (3 if product.batched else 2)


def _joined(unit: Unit, product: Product) -> list[str]:
    """Statements that join leading dimensions of the operands."""
    lines = []
    for name in dict.fromkeys((product.left, product.right)):
        more = _joined_dims(unit, name, product)
        tensor = unit.tensors[name]
        if more and product.batched:
            lines.append(f"{tensor} = {tensor}.flatten(0, {more})")
        elif more:
            lines.append(f"{tensor} = {tensor}.reshape(-1, {tensor}.shape[-1])")
    return lines


def _strides(unit: Unit, product: Product) -> dict[str, str]:
    """Kernel arguments for the strides of both operands."""
    left, right = unit.tensors[product.left], unit.tensors[product.right]
    other = right if left != right else f"{right}_right"
    more = _joined_dims(unit, product.left, product)
    others = _joined_dims(unit, product.right, product)
    found = {}
    if product.batched:
        found[f"{left}_batch_stride"] = f"{left}.stride(0)"
    found[f"{left}_row_stride"] = f"{left}.stride({product.left_rows - more})"
    found[f"{left}_k_stride"] = f"{left}.stride({product.left_k - more})"
    if product.batched:
        found[f"{other}_batch_stride"] = f"{right}.stride(0)"
    found[f"{other}_k_stride"] = f"{right}.stride({product.right_k - others})"
    found[f"{other}_col_stride"] = f"{right}.stride({product.right_columns - others})"
    return found
