"""Pointwise kernels: one flat index, or rows times columns where operands broadcast."""

from __future__ import annotations

from collections.abc import Mapping

from mtmc_engine.core.program import Param
from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.expressions import Text
from mtmc_engine.schedule.render.folds import fold_text
from mtmc_engine.schedule.render.frame import Frame, Walk
from mtmc_engine.schedule.render.launcher import Sizes
from mtmc_engine.schedule.render.rows import block_sizes
from mtmc_engine.schedule.render.unit import GroupText, Launch, Unit, assemble
from mtmc_engine.schedule.templates.lanes import masked_lanes


def render_pointwise(unit: Unit, params: Mapping[str, Param]) -> GroupText:
    """One kernel over all elements."""
    runs = unit.space.outer.runs + unit.space.reduced.runs
    frame, launch = _tile(unit, params) if len(runs) > 1 else _flat(unit, params)
    axes = unit.space.outer.axes + unit.space.reduced.axes
    lanes = masked_lanes(unit.inside, unit.space.finished, axes)
    body = Body(unit.program, frame, unit.tensors, unit.names, lanes)
    body.emit(unit.inside)
    unit.store_all(body)
    for total, name in unit.vectors.items():
        folded = body.seen_by(total)
        for axis in reversed(range(min(len(runs), 2))):
            folded = fold_text(total, folded, f"axis={axis}", body.helpers)
        body.lines.append(f"tl.store({name}_ptr + tl.program_id(0), {folded})")
    return assemble(unit, frame, body, launch)


def _flat(unit: Unit, params: Mapping[str, Param]) -> tuple[Frame, Launch]:
    frame = Frame(
        [Walk(unit.space.reduced, Text("offsets"), "n_elements", "mask")],
        [
            (
                "offsets",
                "offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)",
            ),
            ("mask", "mask = offsets < n_elements"),
        ],
    )
    size = Sizes(unit.program, unit.tensors).of(unit.space.reduced.axes)
    for name in unit.direct:
        size = f"{name}.numel()"
        break
    constants = {"BLOCK_SIZE": str(params["block"])}
    grid = f"(triton.cdiv(n_elements, {params['block']}),)"
    options = {"num_warps": params["warps"]}
    programs = f"triton.cdiv({size}, {params['block']})"
    return frame, Launch(grid, constants, options, {"n_elements": size}, programs=programs)


def _tile(unit: Unit, params: Mapping[str, Param]) -> tuple[Frame, Launch]:
    space = unit.space
    rows, cols = space.outer, space.reduced
    runs, texts = block_sizes(unit, {rows: "n_rows", cols: "n_cols"})
    frame = Frame(
        [
            Walk(rows, Text("rows"), "n_rows", "row_mask"),
            Walk(cols, Text("cols"), "n_cols", "col_mask"),
        ],
        [
            ("col_blocks", "col_blocks = tl.cdiv(n_cols, BLOCK_COLS)"),
            ("row_block", "row_block = (tl.program_id(0) // col_blocks).to(tl.int64)"),
            ("col_block", "col_block = tl.program_id(0) % col_blocks"),
            ("rows", "rows = row_block * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]"),
            ("cols", "cols = col_block * BLOCK_COLS + tl.arange(0, BLOCK_COLS)[None, :]"),
            ("row_mask", "row_mask = rows < n_rows"),
            ("col_mask", "col_mask = cols < n_cols"),
            ("mask", "mask = row_mask & col_mask"),
        ],
        {("row_mask", "col_mask"): "mask"},
        run_sizes=runs,
    )
    size = params["block"]
    setup = (
        f"BLOCK_COLS = min(triton.next_power_of_2(n_cols), {size})",
        f"BLOCK_ROWS = {size} // BLOCK_COLS",
        "grid = (triton.cdiv(n_rows, BLOCK_ROWS) * triton.cdiv(n_cols, BLOCK_COLS),)",
    )
    constants = {"BLOCK_ROWS": "BLOCK_ROWS", "BLOCK_COLS": "BLOCK_COLS"}
    return frame, Launch("grid", constants, {"num_warps": params["warps"]}, texts, setup)
