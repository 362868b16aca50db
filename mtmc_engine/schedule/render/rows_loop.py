"""Kernels over rows that are too long for registers: sweeps in blocks of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mtmc_engine.core.program import Param
from mtmc_engine.schedule.ops import require
from mtmc_engine.schedule.render.accumulators import Accumulator, accumulator_of, paired
from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.expressions import Text, number
from mtmc_engine.schedule.render.frame import Frame, Walk
from mtmc_engine.schedule.render.rows import block_sizes
from mtmc_engine.schedule.render.unit import (
    GroupText,
    Launch,
    Unit,
    assemble,
    indented,
    shared_offsets,
)
from mtmc_engine.schedule.templates.folds import identity
from mtmc_engine.schedule.templates.lanes import Lanes, masked_lanes
from mtmc_engine.schedule.templates.passes import Pair, pairs_of, sweeps
from mtmc_engine.schedule.templates.space import resolved
from mtmc_engine.schedule.templates.tensors import Value
from mtmc_engine.schedule.templates.trace import Output


def render_rows_loop(unit: Unit, params: Mapping[str, Param]) -> GroupText:
    """One kernel whose programs sweep over a row, or over an inner block of columns."""
    require(not unit.space.inner.runs or bool(unit.space.reduced.runs), "no row to sweep over")
    frame, launch = _inner(unit, params) if unit.space.inner.runs else _row(unit, params)
    pairs = pairs_of(unit.program) if params["form"] == "one_pass" else ()
    body = Body(unit.program, frame, unit.tensors, unit.names)
    Sweeps(unit, body, pairs).write()
    return assemble(unit, frame, body, launch)


def _row(unit: Unit, params: Mapping[str, Param]) -> tuple[Frame, Launch]:
    space = unit.space
    runs, texts = block_sizes(unit, {space.outer: "n_rows", space.reduced: "n_cols"})
    frame = Frame(
        [
            Walk(space.outer, Text("row"), "n_rows"),
            Walk(space.reduced, Text("cols"), "n_cols", "mask"),
        ],
        [("row", "row = tl.program_id(0).to(tl.int64)")],
        run_sizes=runs,
    )
    constants = {"BLOCK_COLS": str(params["block_cols"])}
    grid = "(n_rows,)" if space.outer.runs else "(1,)"
    return frame, Launch(grid, constants, {"num_warps": params["warps"]}, texts)


def _inner(unit: Unit, params: Mapping[str, Param]) -> tuple[Frame, Launch]:
    space = unit.space
    names = {space.outer: "n_outer", space.reduced: "n_reduced", space.inner: "n_inner"}
    runs, texts = block_sizes(unit, names)
    lanes = params["rows_per_program"]
    block = "(tl.program_id(0) % inner_blocks)" if space.outer.runs else "tl.program_id(0)"
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
            ("inner_mask", "inner_mask = inner < n_inner"),
        ],
        {("reduced_mask", "inner_mask"): "mask"},
        "axis=0, keep_dims=True",
        runs,
    )
    constants = {"BLOCK_REDUCED": str(params["block_cols"]), "BLOCK_INNER": str(lanes)}
    outer = "n_outer * " if space.outer.runs else ""
    grid = f"({outer}triton.cdiv(n_inner, {lanes}),)"
    return frame, Launch(grid, constants, {"num_warps": params["warps"]}, texts)


@dataclass
class Sweeps:
    """Writes the sweeps over the row, one loop each, and what is computed between them.

    first, last: where a sweep begins and ends, "" for the ends of the row.
    """

    unit: Unit
    body: Body
    pairs: tuple[Pair, ...]
    first: str = "0"
    last: str = ""

    def write(self) -> None:
        unit, body = self.unit, self.body
        known = sweeps(unit.program, self.pairs)
        narrow = [v for v in unit.inside if not self.is_wide(v)]
        stores = [(n, o, known[o.tensor.value]) for n, o in unit.direct.items()]
        last = max(
            [known[f.operands[0]] for f in self._reductions]
            + [at for _, o, at in stores if self.is_wide(o.tensor.value)]
        )
        for at in range(last + 1):
            body.emit(v for v in narrow if known[v] == at and v.kind != "reduce")
            folds = [f for f in self._reductions if known[f] == at + 1]
            written = [
                (n, o) for n, o, when in stores if when == at and self.is_wide(o.tensor.value)
            ]
            for accumulator in self.sweep(folds, written):
                accumulator.after()
        body.emit(v for v in narrow if v.kind != "reduce")
        for name, output in unit.direct.items():
            if not self.is_wide(output.tensor.value):
                body.store(output, name)
        for total, name in unit.vectors.items():
            body.store_value(total.operands[0], name)

    @property
    def _reductions(self) -> list[Value]:
        return [value for value in self.unit.folds if value.kind == "reduce"]

    def is_wide(self, value: Value) -> bool:
        """Whether the value varies along the row."""
        return bool(set(self.unit.space.reduced.axes) & set(resolved(value.axes)))

    def sweep(
        self, folds: Sequence[Value], written: Sequence[tuple[str, Output]]
    ) -> list[Accumulator]:
        """One loop over the row; its accumulators are still to be folded."""
        if not folds and not written:
            return []
        body = self.body
        pairs = [pair for pair in self.pairs if set(pair.folds) & set(folds)]
        plain = [f for f in folds if not any(f in pair.folds for pair in pairs)]
        roots = [f.operands[0] for f in plain] + [pair.value for pair in pairs]
        targets = roots + [output.tensor.value for _, output in written]
        wide = self._needed(targets)
        body.lanes = self._lanes(wide, plain, pairs)
        accumulators = [accumulator_of(self, f) for f in plain]
        accumulators += [paired(self, pair) for pair in pairs]
        for accumulator in accumulators:
            body.lines += accumulator.before()
        reverse = self._carry(wide)
        outside, body.lines = body.lines, []
        body.emit(wide)
        for accumulator in accumulators:
            accumulator.inside()
        for name, output in written:
            body.store(output, name)
        loop = shared_offsets(self._block(), body.lines, "block_offsets")
        step, size = self._walk()
        head = [f"for start in range({self.first}, {self.last or size}, {step}):"]
        if reverse:
            blocks = f"tl.cdiv({size}, {step})"
            head = [
                f"for block in range({blocks}):",
                f"    start = ({blocks} - 1 - block) * {step}",
            ]
        body.lines = [*outside, *head, *indented(loop)]
        for value in wide:
            del body.texts[value]
        body.lanes = Lanes({}, {}, {})
        return accumulators

    def _carry(self, wide: Sequence[Value]) -> bool:
        """Starts what scans carry from block to block; True where they run from the end."""
        scans = [value for value in wide if value.kind == "scan"]
        require(len({scan.reverse for scan in scans}) <= 1, "scans in both directions")
        shape = "(1, BLOCK_INNER)" if self.unit.space.inner.runs else "()"
        for scan in scans:
            name = self.fresh("carry")
            self.body.carries[scan] = name
            start = number(identity(scan.fold, scan.dtype)).text
            self.body.lines.append(f"{name} = tl.full({shape}, {start}, dtype=tl.{scan.dtype})")
        return any(scan.reverse for scan in scans)

    def _needed(self, targets: Sequence[Value]) -> list[Value]:
        needed = set(targets)
        for value in reversed(self.unit.program.values):
            if value in needed:
                needed.update(v for v in value.operands if self.is_wide(v))
        return [v for v in self.unit.program.values if v in needed and self.is_wide(v)]

    def _lanes(self, wide: Sequence[Value], plain: Sequence[Value], pairs: Sequence[Pair]) -> Lanes:
        firsts = [pair.folds[0] for pair in pairs]
        scans = [value for value in wide if value.kind == "scan"]
        return masked_lanes(wide, [*plain, *firsts, *scans], self.unit.space.reduced.axes)

    def _walk(self) -> tuple[str, str]:
        if self.unit.space.inner.runs:
            return "BLOCK_REDUCED", "n_reduced"
        return "BLOCK_COLS", "n_cols"

    def _block(self) -> list[str]:
        if self.unit.space.inner.runs:
            wide = ".to(tl.int64)" if not self.unit.space.outer.runs else ""
            return [
                f"reduced = start + tl.arange(0, BLOCK_REDUCED)[:, None]{wide}",
                "reduced_mask = reduced < n_reduced",
                "mask = reduced_mask & inner_mask",
            ]
        return ["cols = start + tl.arange(0, BLOCK_COLS)", "mask = cols < n_cols"]

    @property
    def shape(self) -> str:
        """Shape of an accumulator."""
        if self.unit.space.inner.runs:
            return "(BLOCK_REDUCED, BLOCK_INNER)"
        return "(BLOCK_COLS,)"

    @property
    def column_mask(self) -> str:
        """True where a position along the row exists."""
        return "reduced_mask" if self.unit.space.inner.runs else "mask"

    @property
    def position(self) -> str:
        """The variable that holds the position along the row."""
        return "reduced" if self.unit.space.inner.runs else "cols"

    @property
    def size(self) -> str:
        """The variable that holds the row's length."""
        return self._walk()[1]

    def fresh(self, name: str) -> str:
        return self.body.names.fresh(name)
