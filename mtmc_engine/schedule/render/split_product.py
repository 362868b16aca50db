"""A matrix product whose long inner dimension is shared by several programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mtmc_engine.core.program import Param
from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.expressions import Text
from mtmc_engine.schedule.render.frame import Frame, Walk
from mtmc_engine.schedule.render.names import Names
from mtmc_engine.schedule.render.rows import block_sizes
from mtmc_engine.schedule.render.unit import (
    GroupText,
    KernelText,
    Launch,
    Unit,
    kernel_text,
    launched,
)

_SHARE = ("split = tl.program_id(1)", "first = split * share", "last = min(first + share, K)")
# Rows and columns that one program of the second kernel adds up.
_SUM_BLOCK = (4, 256)


def split_product(
    unit: Unit, params: Mapping[str, Param], lines: Sequence[str], launch: Launch
) -> GroupText:
    """A kernel for the shares of the product, and one that adds them and does the rest.

    lines: statements that compute one tile of a share. launch: of the whole product.
    """
    parts = unit.names.fresh("parts")
    taken = [*unit.names.taken, *unit.direct]
    like = next(iter(unit.tensors.values()))
    body = Body(unit.program, Frame([]), unit.tensors, Names(taken))
    body.lines.append(
        f"tl.store({parts}_ptr + (split * M + rows) * N + cols, acc, mask=row_mask & col_mask)"
    )
    names, values = launch.head[0].split(" = ")
    sizes = {
        **launch.sizes,
        "share": "max(triton.cdiv(K, SPLITS * BLOCK_K), 1) * BLOCK_K",
        "n_splits": "max(triton.cdiv(K, share), 1)",
    }
    sharing = replace(
        launch,
        sizes=sizes,
        setup=(
            *(line for line in launch.setup if not line.startswith("grid")),
            f"{parts} = {like}.new_empty((n_splits, M, N), dtype=torch.float32)",
            "grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), n_splits)",
        ),
        head=(f"{names}, SPLITS = {values}, {params['splits']}",),
    )
    share = kernel_text(
        unit,
        body.frame,
        body,
        sharing,
        prologue=(*_SHARE, *lines),
        stage="_share",
        between=[parts],
    )
    return launched(unit, [share, _sum(unit, parts, sizes, taken)])


def _sum(unit: Unit, parts: str, sizes: Mapping[str, str], taken: Sequence[str]) -> KernelText:
    """The kernel that adds the shares of a block and computes what follows."""
    runs, _ = block_sizes(unit, {unit.space.outer: "M", unit.space.reduced: "N"})
    block_rows, block_cols = _SUM_BLOCK
    frame = Frame(
        [
            Walk(unit.space.outer, Text("rows"), "M", "row_mask"),
            Walk(unit.space.reduced, Text("cols"), "N", "col_mask"),
        ],
        [
            ("col_blocks", "col_blocks = tl.cdiv(N, BLOCK_COLS)"),
            ("row_block", "row_block = (tl.program_id(0) // col_blocks).to(tl.int64)"),
            ("col_block", "col_block = tl.program_id(0) % col_blocks"),
            ("rows", "rows = row_block * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]"),
            ("cols", "cols = col_block * BLOCK_COLS + tl.arange(0, BLOCK_COLS)[None, :]"),
            ("row_mask", "row_mask = rows < M"),
            ("col_mask", "col_mask = cols < N"),
            ("mask", "mask = row_mask & col_mask"),
        ],
        {("row_mask", "col_mask"): "mask"},
        run_sizes=runs,
    )
    body = Body(unit.program, frame, unit.tensors, Names(taken))
    body.lines += [
        "acc = tl.zeros((BLOCK_ROWS, BLOCK_COLS), dtype=tl.float32)",
        "for split in range(n_splits):",
        f"    acc += tl.load({parts}_ptr + (split * M + rows) * N + cols, mask=mask, other=0.0)",
    ]
    body.texts[unit.program.products[0]] = Text("acc")
    body.emit(unit.inside)
    unit.store_all(body)
    launch = Launch(
        "(triton.cdiv(M, BLOCK_ROWS) * triton.cdiv(N, BLOCK_COLS),)",
        {"BLOCK_ROWS": "BLOCK_ROWS", "BLOCK_COLS": "BLOCK_COLS"},
        {"num_warps": 4},
        sizes,
        head=(f"BLOCK_ROWS, BLOCK_COLS = {block_rows}, {block_cols}",),
    )
    return kernel_text(unit, frame, body, launch, between=[parts])
