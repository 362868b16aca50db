"""Kernels over rows: the whole reduced block in registers."""

from __future__ import annotations

from collections.abc import Mapping

from mtmc_engine.core.program import Param
from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.expressions import Text
from mtmc_engine.schedule.render.frame import Frame, Walk
from mtmc_engine.schedule.render.launcher import Sizes
from mtmc_engine.schedule.render.unit import GroupText, Launch, Unit, assemble
from mtmc_engine.schedule.templates.lanes import masked_lanes
from mtmc_engine.schedule.templates.space import Block, Run, resolved


def render_rows(unit: Unit, params: Mapping[str, Param]) -> GroupText:
    """One kernel whose programs hold whole rows, or whole columns of an inner block."""
    if unit.space.inner.runs:
        frame, launch = _inner(unit, params)
    elif params["rows_per_program"] == 1 or not unit.space.outer.runs:
        frame, launch = _row(unit, params)
    else:
        frame, launch = _tile(unit, params)
    lanes = masked_lanes(unit.inside, unit.folds, unit.space.reduced.axes)
    body = Body(unit.program, frame, unit.tensors, unit.names, lanes)
    body.emit(unit.inside)
    unit.store_all(body)
    for total, name in unit.vectors.items():
        body.store_value(total.operands[0], name)
    return assemble(unit, frame, body, launch)


def block_sizes(unit: Unit, names: Mapping[Block, str]) -> tuple[dict[Run, str], dict[str, str]]:
    """Names of the sizes of all runs, and the launcher's expression for each name."""
    sizes = Sizes(unit.program, unit.tensors)
    runs: dict[Run, str] = {}
    texts = {name: sizes.of(block.axes) for block, name in names.items() if block.axes}
    for block, name in names.items():
        if len(block.runs) == 1:
            runs[block.runs[0]] = name
            continue
        for at, run in enumerate(block.runs):
            runs[run] = unit.names.fresh(f"{name}_{at}")
            texts[runs[run]] = sizes.of(run.axes)
    return runs, texts


def _row(unit: Unit, params: Mapping[str, Param]) -> tuple[Frame, Launch]:
    space = unit.space
    runs, texts = block_sizes(unit, {space.outer: "n_rows", space.reduced: "n_cols"})
    frame = Frame(
        [
            Walk(space.outer, Text("row"), "n_rows"),
            Walk(space.reduced, Text("cols"), "n_cols", "mask"),
        ],
        [
            ("row", "row = tl.program_id(0).to(tl.int64)"),
            ("cols", "cols = tl.arange(0, BLOCK_COLS)"),
            ("mask", "mask = cols < n_cols"),
        ],
        run_sizes=runs,
    )
    constants = {"BLOCK_COLS": _whole(unit, "n_cols")}
    grid = "(n_rows,)" if space.outer.runs else "(1,)"
    return frame, Launch(grid, constants, _options(params), texts)


def _tile(unit: Unit, params: Mapping[str, Param]) -> tuple[Frame, Launch]:
    space = unit.space
    runs, texts = block_sizes(unit, {space.outer: "n_rows", space.reduced: "n_cols"})
    first = "tl.program_id(0).to(tl.int64) * ROWS_PER_PROGRAM"
    frame = Frame(
        [
            Walk(space.outer, Text("rows"), "n_rows", "row_mask"),
            Walk(space.reduced, Text("cols"), "n_cols", "col_mask"),
        ],
        [
            ("rows", f"rows = {first} + tl.arange(0, ROWS_PER_PROGRAM)[:, None]"),
            ("cols", "cols = tl.arange(0, BLOCK_COLS)[None, :]"),
            ("row_mask", "row_mask = rows < n_rows"),
            ("col_mask", "col_mask = cols < n_cols"),
            ("mask", "mask = row_mask & col_mask"),
        ],
        {("row_mask", "col_mask"): "mask"},
        "axis=1, keep_dims=True",
        runs,
    )
    constants = {
        "ROWS_PER_PROGRAM": str(params["rows_per_program"]),
        "BLOCK_COLS": _whole(unit, "n_cols"),
    }
    grid = f"(triton.cdiv(n_rows, {params['rows_per_program']}),)"
    return frame, Launch(grid, constants, _options(params), texts)


def _inner(unit: Unit, params: Mapping[str, Param]) -> tuple[Frame, Launch]:
    space = unit.space
    names = {space.outer: "n_outer", space.reduced: "n_reduced", space.inner: "n_inner"}
    runs, texts = block_sizes(unit, names)
    if space.outer.runs:
        block = "(tl.program_id(0) % inner_blocks)"
        reduced = "reduced = tl.arange(0, BLOCK_REDUCED)[:, None]"
        grid = "(n_outer * triton.cdiv(n_inner, {}),)"
    else:
        block = "tl.program_id(0)"
        reduced = "reduced = tl.arange(0, BLOCK_REDUCED)[:, None].to(tl.int64)"
        grid = "(triton.cdiv(n_inner, {}),)"
    frame = Frame(
        [
            Walk(space.outer, Text("outer"), "n_outer"),
            Walk(space.reduced, Text("reduced"), "n_reduced", "reduced_mask"),
            Walk(space.inner, Text("inner"), "n_inner", "inner_mask"),
        ],
        [
            ("inner_blocks", "inner_blocks = tl.cdiv(n_inner, BLOCK_INNER)"),
            ("outer", "outer = (tl.program_id(0) // inner_blocks).to(tl.int64)"),
            ("inner", f"inner = {block} * BLOCK_INNER + tl.arange(0, BLOCK_INNER)[None, :]"),
            ("reduced", reduced),
            ("inner_mask", "inner_mask = inner < n_inner"),
            ("reduced_mask", "reduced_mask = reduced < n_reduced"),
            ("mask", "mask = reduced_mask & inner_mask"),
        ],
        {("reduced_mask", "inner_mask"): "mask"},
        "axis=0, keep_dims=True",
        runs,
    )
    constants = {
        "BLOCK_REDUCED": _whole(unit, "n_reduced"),
        "BLOCK_INNER": str(params["rows_per_program"]),
    }
    return frame, Launch(
        grid.format(params["rows_per_program"]), constants, _options(params), texts
    )


def _whole(unit: Unit, size: str) -> str:
    """Block that holds the whole reduced dimension, which may be empty where rows are stored."""
    wide = set(unit.space.reduced.axes)
    stored = [set(resolved(output.tensor.value.axes)) for output in unit.direct.values()]
    if any(wide & axes for axes in stored):
        return f"triton.next_power_of_2({size})"
    return f"triton.next_power_of_2(max({size}, 1))"


def _options(params: Mapping[str, Param]) -> dict[str, object]:
    return {"num_warps": params["warps"]}
