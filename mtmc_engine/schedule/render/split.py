"""Two kernels where rows are few: programs share a row, then their parts are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mtmc_engine.core.program import Param
from mtmc_engine.schedule.ops import require
from mtmc_engine.schedule.render.accumulators import Accumulator, Part
from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.expressions import Text, number
from mtmc_engine.schedule.render.frame import Frame, Walk
from mtmc_engine.schedule.render.names import Names
from mtmc_engine.schedule.render.rows import block_sizes
from mtmc_engine.schedule.render.rows_loop import Sweeps
from mtmc_engine.schedule.render.unit import (
    GroupText,
    KernelText,
    Launch,
    Unit,
    kernel_text,
    launched,
)
from mtmc_engine.schedule.templates.passes import pairs_of, sweeps
from mtmc_engine.schedule.templates.space import Block, Run, Space
from mtmc_engine.schedule.templates.tensors import Value


def render_split(unit: Unit, params: Mapping[str, Param]) -> GroupText:
    """A kernel that reduces shares of the rows, and one that joins them and computes the rest."""
    layout: _Layout = (_Inner if unit.space.inner.runs else _Rows)(unit.space, params)
    runs, sizes = block_sizes(unit, layout.blocks)
    taken = [*unit.names.taken, *unit.direct, *unit.vectors.values()]
    body = Body(unit.program, layout.share_frame(runs), unit.tensors, Names(taken))
    pairs = pairs_of(unit.program)
    loop, known = Sweeps(unit, body, pairs, "first", "last"), sweeps(unit.program, pairs)
    folds = [value for value in unit.folds if value.kind == "reduce"]
    require(all(known[fold] == 1 for fold in folds), "reductions that need one another")
    body.emit(v for v in _before(unit, folds) if not loop.is_wide(v) and known[v] == 0)
    shared = _share(unit, layout, loop, folds)
    parts = [part for _, found in shared for part in found]
    tensors = [tensor for _, tensor in parts]
    like = next(iter(unit.tensors.values()))
    made = tuple(
        f"{tensor} = {like}.new_empty({layout.part_shape}, dtype=torch.{part.dtype})"
        for part, tensor in parts
    )
    sizes |= layout.shares
    launch = Launch(layout.share_grid, layout.constants, layout.options, sizes, made)
    launch = layout.with_head(launch)
    share = kernel_text(unit, body.frame, body, launch, stage="_share", between=tensors)
    return launched(unit, [share, _join(unit, layout, loop, shared, (runs, sizes))])


Shared = list[tuple[Accumulator, list[tuple[Part, str]]]]


def _before(unit: Unit, folds: Sequence[Value]) -> list[Value]:
    """Values that the reductions are computed from."""
    needed = set(folds)
    for value in reversed(unit.inside):
        if value in needed:
            needed.update(value.operands)
    return [value for value in unit.inside if value in needed]


def _after(unit: Unit, body: Body) -> list[Value]:
    """Values that the results need and that the joined parts do not give."""
    needed = {output.tensor.value for output in unit.direct.values()}
    needed |= {total.operands[0] for total in unit.vectors}
    for value in reversed(unit.inside):
        if value in needed and value not in body.texts:
            needed.update(value.operands)
    return [value for value in unit.inside if value in needed]


def _share(unit: Unit, layout: _Layout, loop: Sweeps, folds: Sequence[Value]) -> Shared:
    """One program's share of a row; each part goes to a tensor of its own."""
    shared: Shared = []
    for accumulator in loop.sweep(folds, []):
        found = [(part, unit.names.fresh(f"{part.name}_parts")) for part in accumulator.parts()]
        for part, tensor in found:
            pointer = f"{tensor}_ptr + {layout.offset('split')}"
            loop.body.lines.append(f"tl.store({pointer}, {part.text}{layout.store_mask})")
        shared.append((accumulator, found))
    return shared


def _join(
    unit: Unit,
    layout: _Layout,
    loop: Sweeps,
    shared: Shared,
    named: tuple[dict[Run, str], dict[str, str]],
) -> KernelText:
    """Every program joins the parts of its row, then computes its block of the result."""
    runs, sizes = named
    wide = any(loop.is_wide(output.tensor.value) for output in unit.direct.values())
    taken = [*unit.names.taken, *unit.direct, *unit.vectors.values()]
    body = Body(unit.program, layout.join_frame(runs, wide=wide), unit.tensors, Names(taken))
    loop.body = body
    tensors = []
    for accumulator, parts in shared:
        names = [body.names.fresh(f"{part.name}_shares") for part, _ in parts]
        for name, (part, tensor) in zip(names, parts, strict=True):
            pointer = f"{tensor}_ptr + {layout.offset('shares')}"
            other = number(part.other).text
            body.lines.append(
                f"{name} = tl.load({pointer}, mask={layout.load_mask}, other={other})"
            )
            tensors.append(tensor)
        accumulator.whole(names)
    body.emit(_after(unit, body))
    unit.store_all(body)
    for total, name in unit.vectors.items():
        body.store_value(total.operands[0], name)
    constants = {**layout.constants, "SPLITS": "SPLITS"}
    launch = Launch(layout.join_grid(wide=wide), constants, layout.options, sizes)
    return kernel_text(unit, body.frame, body, launch, between=tensors)


@dataclass(frozen=True)
class _Rows:
    """Names, index statements and grids where the last dimension is reduced."""

    space: Space
    params: Mapping[str, Param]

    @property
    def blocks(self) -> dict[Block, str]:
        names = {self.space.outer: "n_rows", self.space.reduced: "n_cols"}
        return {block: name for block, name in names.items() if block.runs}

    @property
    def constants(self) -> dict[str, str]:
        return {"BLOCK_COLS": "BLOCK_COLS"}

    @property
    def options(self) -> dict[str, object]:
        return {"num_warps": self.params["warps"]}

    def with_head(self, launch: Launch) -> Launch:
        """The launch with the constants to tune at the launcher's top."""
        return _headed(launch, BLOCK_COLS=self.params["block_cols"], SPLITS=self.params["splits"])

    @property
    def shares(self) -> dict[str, str]:
        return _shares("n_cols", "BLOCK_COLS")

    @property
    def _rows(self) -> str:
        return "n_rows" if self.space.outer.runs else "1"

    @property
    def part_shape(self) -> str:
        return "(n_rows, n_splits)" if self.space.outer.runs else "n_splits"

    @property
    def share_grid(self) -> str:
        return f"({self._rows}, n_splits)"

    def join_grid(self, *, wide: bool) -> str:
        if not wide:
            return f"({self._rows},)"
        rows = "n_rows * " if self.space.outer.runs else ""
        return f"({rows}triton.cdiv(n_cols, BLOCK_COLS),)"

    def offset(self, part: str) -> str:
        return f"row * n_splits + {part}" if self.space.outer.runs else part

    store_mask = ""
    load_mask = "share_mask"

    def _walks(self) -> list[Walk]:
        row = [Walk(self.space.outer, Text("row"), "n_rows")] if self.space.outer.runs else []
        return [*row, Walk(self.space.reduced, Text("cols"), "n_cols", "mask")]

    def share_frame(self, runs: dict[Run, str]) -> Frame:
        prelude = [
            ("row", "row = tl.program_id(0).to(tl.int64)"),
            *_share_prelude("n_cols", whole=not self.space.outer.runs),
        ]
        return Frame(self._walks(), prelude, run_sizes=runs)

    def join_frame(self, runs: dict[Run, str], *, wide: bool) -> Frame:
        row, cols = "row = tl.program_id(0).to(tl.int64)", "tl.program_id(0).to(tl.int64)"
        if wide and self.space.outer.runs:
            row = "row = (tl.program_id(0) // col_blocks).to(tl.int64)"
            cols = "tl.program_id(0) % col_blocks"
        prelude = [
            ("col_blocks", "col_blocks = tl.cdiv(n_cols, BLOCK_COLS)"),
            ("row", row),
            ("cols", f"cols = {cols} * BLOCK_COLS + tl.arange(0, BLOCK_COLS)"),
            ("mask", "mask = cols < n_cols"),
            ("shares", "shares = tl.arange(0, SPLITS)"),
            ("share_mask", "share_mask = shares < n_splits"),
        ]
        return Frame(self._walks(), prelude, run_sizes=runs)


@dataclass(frozen=True)
class _Inner:
    """Names, index statements and grids where a block of columns is reduced."""

    space: Space
    params: Mapping[str, Param]

    @property
    def blocks(self) -> dict[Block, str]:
        space = self.space
        names = {space.outer: "n_outer", space.reduced: "n_reduced", space.inner: "n_inner"}
        return {block: name for block, name in names.items() if block.runs}

    @property
    def constants(self) -> dict[str, str]:
        return {"BLOCK_REDUCED": "BLOCK_REDUCED", "BLOCK_INNER": "BLOCK_INNER"}

    @property
    def options(self) -> dict[str, object]:
        return {"num_warps": self.params["warps"]}

    def with_head(self, launch: Launch) -> Launch:
        """The launch with the constants to tune at the launcher's top."""
        return _headed(
            launch,
            BLOCK_REDUCED=self.params["block_cols"],
            BLOCK_INNER=self.params["rows_per_program"],
            SPLITS=self.params["splits"],
        )

    @property
    def shares(self) -> dict[str, str]:
        return _shares("n_reduced", "BLOCK_REDUCED")

    @property
    def part_shape(self) -> str:
        outer = "n_outer, " if self.space.outer.runs else ""
        return f"({outer}n_splits, n_inner)"

    @property
    def _columns(self) -> str:
        outer = "n_outer * " if self.space.outer.runs else ""
        return f"{outer}triton.cdiv(n_inner, BLOCK_INNER)"

    @property
    def share_grid(self) -> str:
        return f"({self._columns}, n_splits)"

    def join_grid(self, *, wide: bool) -> str:
        return f"({self._columns}{' * triton.cdiv(n_reduced, BLOCK_REDUCED)' if wide else ''},)"

    def offset(self, part: str) -> str:
        row = f"(outer * n_splits + {part})" if self.space.outer.runs else part
        return f"{row} * n_inner + inner"

    store_mask = ", mask=inner_mask"
    load_mask = "share_mask & inner_mask"

    def _frame(self, prelude: list[tuple[str, str]], runs: dict[Run, str]) -> Frame:
        outer = [Walk(self.space.outer, Text("outer"), "n_outer")] if self.space.outer.runs else []
        walks = [
            *outer,
            Walk(self.space.reduced, Text("reduced"), "n_reduced", "reduced_mask"),
            Walk(self.space.inner, Text("inner"), "n_inner", "inner_mask"),
        ]
        joined: dict[tuple[str, ...], str] = {("reduced_mask", "inner_mask"): "mask"}
        return Frame(walks, prelude, joined, "axis=0, keep_dims=True", runs)

    def share_frame(self, runs: dict[Run, str]) -> Frame:
        return self._frame(
            [
                *_columns("tl.program_id(0)"),
                *_share_prelude("n_reduced", whole=not self.space.outer.runs),
            ],
            runs,
        )

    def join_frame(self, runs: dict[Run, str], *, wide: bool) -> Frame:
        long = "" if self.space.outer.runs else ".to(tl.int64)"
        block = "(tl.program_id(0) // inner_blocks % reduced_blocks)"
        prelude = [
            ("reduced_blocks", "reduced_blocks = tl.cdiv(n_reduced, BLOCK_REDUCED)"),
            *_columns("tl.program_id(0)", " // reduced_blocks" if wide else ""),
            (
                "reduced",
                f"reduced = {block}{long} * BLOCK_REDUCED + tl.arange(0, BLOCK_REDUCED)[:, None]",
            ),
            ("reduced_mask", "reduced_mask = reduced < n_reduced"),
            ("mask", "mask = reduced_mask & inner_mask"),
            ("shares", f"shares = tl.arange(0, SPLITS)[:, None]{long}"),
            ("share_mask", "share_mask = shares < n_splits"),
        ]
        return self._frame(prelude, runs)


_Layout = _Rows | _Inner


def _headed(launch: Launch, **constants: Param) -> Launch:
    head = f"{', '.join(constants)} = {', '.join(map(str, constants.values()))}"
    return Launch(
        launch.grid, launch.constants, launch.options, launch.sizes, launch.setup, head=(head,)
    )


def _shares(size: str, block: str) -> dict[str, str]:
    """How many positions each program takes, in whole blocks, and how many programs that makes."""
    return {
        "share": f"max(triton.cdiv({size}, SPLITS * {block}), 1) * {block}",
        "n_splits": f"max(triton.cdiv({size}, share), 1)",
    }


def _share_prelude(size: str, *, whole: bool) -> list[tuple[str, str]]:
    """whole: the rows together may be longer than 32 bits count."""
    return [
        ("split", f"split = tl.program_id(1){'.to(tl.int64)' if whole else ''}"),
        ("first", "first = split * share"),
        ("last", f"last = min(first + share, {size})"),
    ]


def _columns(program: str, more: str = "") -> list[tuple[str, str]]:
    first = f"({program} % inner_blocks) * BLOCK_INNER"
    return [
        ("inner_blocks", "inner_blocks = tl.cdiv(n_inner, BLOCK_INNER)"),
        ("outer", f"outer = ({program} // inner_blocks{more}).to(tl.int64)"),
        ("inner", f"inner = {first} + tl.arange(0, BLOCK_INNER)[None, :]"),
        ("inner_mask", "inner_mask = inner < n_inner"),
    ]
