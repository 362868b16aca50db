"""Tiled matrix products with a pointwise epilogue."""

from __future__ import annotations

from collections.abc import Mapping

from mtmc_engine.core.program import Param
from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.expressions import Text
from mtmc_engine.schedule.render.frame import Frame, Walk
from mtmc_engine.schedule.render.rows import block_sizes
from mtmc_engine.schedule.render.unit import GroupText, Launch, Unit, assemble
from mtmc_engine.schedule.templates.tensors import Product

_PROLOGUE = """\
# Neighbouring programs share GROUP_M rows of tiles, so that their operands meet in L2.
tiles_m = tl.cdiv(M, BLOCK_M)
tiles_n = tl.cdiv(N, BLOCK_N)
group = tl.program_id(0) // (GROUP_M * tiles_n)
within = tl.program_id(0) % (GROUP_M * tiles_n)
group_rows = min(tiles_m - group * GROUP_M, GROUP_M)
tile_m = group * GROUP_M + within % group_rows
tile_n = within // group_rows
rows = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
cols = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
row_mask = rows < M
col_mask = cols < N
ks = tl.arange(0, BLOCK_K)
a_ptrs = {a}_ptr + rows * {a}_row_stride + ks[None, :] * {a}_k_stride
b_ptrs = {b}_ptr + ks[:, None] * {b_k}_k_stride + cols * {b}_col_stride
acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
for k in range(0, K, BLOCK_K):
    if EVEN_K:
        a = tl.load(a_ptrs, mask=row_mask, other=0.0)
        b = tl.load(b_ptrs, mask=col_mask, other=0.0)
    else:
        a = tl.load(a_ptrs, mask=row_mask & (ks[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=col_mask & (ks[:, None] < K - k), other=0.0)
    acc = tl.dot(a, b, acc{precision})
    a_ptrs += BLOCK_K * {a}_k_stride
    b_ptrs += BLOCK_K * {b_k}_k_stride
"""


def render_matmul(unit: Unit, params: Mapping[str, Param], precision: str) -> GroupText:
    """One kernel: a tile of the product per program, the rest of the group on the tile.

    precision: of float32 products, "ieee" or "tf32"; the parameter "dot" overrides it.
    """
    value = unit.program.products[0]
    assert value.product is not None
    product = value.product
    left, right = unit.tensors[product.left], unit.tensors[product.right]
    single = unit.program.specs[product.left].dtype == "float32"
    prologue = _PROLOGUE.format(
        a=left,
        b=right,
        b_k=right if left != right else f"{right}_right",
        precision=f', input_precision="{params.get("dot", precision)}"' if single else "",
    )
    frame, launch = _frame(unit, params, product)
    body = Body(unit.program, frame, unit.tensors, unit.names)
    body.texts[value] = Text("acc")
    body.emit(unit.inside)
    unit.store_all(body)
    return assemble(unit, frame, body, launch, prologue.splitlines())


def _frame(unit: Unit, params: Mapping[str, Param], product: Product) -> tuple[Frame, Launch]:
    space = unit.space
    runs, texts = block_sizes(unit, {space.outer: "M", space.reduced: "N"})
    left, right = unit.tensors[product.left], unit.tensors[product.right]
    rank = len(unit.program.loads[product.left].dims)
    last = product.left_k == rank - 1
    texts["K"] = f"{left}.shape[{-1 if last else product.left_k}]"
    frame = Frame(
        [
            Walk(space.outer, Text("rows"), "M", "row_mask"),
            Walk(space.reduced, Text("cols"), "N", "col_mask"),
        ],
        [("mask", "mask = row_mask & col_mask")],
        {("row_mask", "col_mask"): "mask"},
        run_sizes=runs,
    )
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M")
    values = ", ".join(str(params[name.lower()]) for name in names)
    b_k = right if left != right else f"{right}_right"
    strides = {
        f"{left}_row_stride": f"{left}.stride({product.left_rows if rank == 2 else 0})",
        f"{left}_k_stride": f"{left}.stride({product.left_k if rank == 2 else 1})",
        f"{b_k}_k_stride": f"{right}.stride({product.right_k})",
        f"{right}_col_stride": f"{right}.stride({product.right_columns})",
    }
    joined = (f"{left} = {left}.reshape(-1, K)",) if rank > 2 else ()
    return frame, Launch(
        "grid",
        {"EVEN_K": "K % BLOCK_K == 0", **{name: name for name in names}},
        {"num_warps": params["warps"], "num_stages": params["stages"]},
        texts,
        (*joined, "grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)"),
        strides,
        (f"{', '.join(names)} = {values}",),
    )
