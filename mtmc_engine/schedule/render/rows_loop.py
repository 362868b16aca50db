"""Kernels over rows that are too long for registers: sweeps in blocks of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mtmc_engine.core.program import Param
from mtmc_engine.schedule.ops import require
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
from mtmc_engine.schedule.templates.lanes import Lanes, identity, masked_lanes
from mtmc_engine.schedule.templates.passes import Moments, Online, Pair, pairs_of, sweeps
from mtmc_engine.schedule.templates.space import resolved
from mtmc_engine.schedule.templates.tensors import Value

# The lowest finite float32: where a running maximum starts.
LOWEST = "-3.4028234663852886e38"


def render_rows_loop(unit: Unit, params: Mapping[str, Param]) -> GroupText:
    """One kernel whose programs sweep over a row, or over an inner block of columns."""
    require(not unit.space.inner.runs or bool(unit.space.reduced.runs), "no row to sweep over")
    frame, launch = _inner(unit, params) if unit.space.inner.runs else _row(unit, params)
    pairs = pairs_of(unit.program) if params["form"] == "one_pass" else ()
    body = Body(unit.program, frame, unit.tensors, unit.names)
    loop = _Sweeps(unit, body, pairs, launch.constants)
    loop.write()
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
    return frame, Launch("(n_rows,)", constants, {"num_warps": params["warps"]}, texts)


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
class _Sweeps:
    """Writes the sweeps over the row, one loop each, and what is computed between them."""

    unit: Unit
    body: Body
    pairs: tuple[Pair, ...]
    constants: Mapping[str, str]

    def write(self) -> None:
        unit, body = self.unit, self.body
        known = sweeps(unit.program, self.pairs)
        narrow = [v for v in unit.inside if not self._is_wide(v)]
        stores = [(n, o, known[o.tensor.value]) for n, o in unit.direct.items()]
        last = max(
            [known[f.operands[0]] for f in unit.folds]
            + [at for _, o, at in stores if self._is_wide(o.tensor.value)]
        )
        for at in range(last + 1):
            body.emit(v for v in narrow if known[v] == at and v.kind != "reduce")
            folds = [f for f in unit.folds if known[f] == at + 1]
            written = [
                (n, o) for n, o, when in stores if when == at and self._is_wide(o.tensor.value)
            ]
            self._sweep(folds, written)
        body.emit(v for v in narrow if v.kind != "reduce")
        for name, output in unit.direct.items():
            if not self._is_wide(output.tensor.value):
                body.store(output, name)
        for total, name in unit.vectors.items():
            body.store_value(total.operands[0], name)

    def _is_wide(self, value: Value) -> bool:
        return bool(set(self.unit.space.reduced.axes) & set(resolved(value.axes)))

    def _sweep(self, folds: Sequence[Value], written: Sequence[tuple[str, object]]) -> None:
        """One loop over the row: accumulators before it, folded after it."""
        if not folds and not written:
            return
        body = self.body
        pairs = [pair for pair in self.pairs if set(pair.folds) & set(folds)]
        plain = [f for f in folds if not any(f in pair.folds for pair in pairs)]
        roots = [f.operands[0] for f in plain] + [pair.value for pair in pairs]
        targets = roots + [output.tensor.value for _, output in written]  # type: ignore[attr-defined]
        wide = self._needed(targets)
        body.lanes = self._lanes(wide, plain, pairs)
        accumulators = [_Plain(self, f) for f in plain]
        paired = [_paired(self, pair) for pair in pairs]
        for accumulator in [*accumulators, *paired]:
            body.lines += accumulator.before()
        outside, body.lines = body.lines, []
        body.emit(wide)
        for accumulator in [*accumulators, *paired]:
            accumulator.inside()
        for name, output in written:
            body.store(output, name)  # type: ignore[arg-type]
        loop = shared_offsets(self._block(), body.lines, "block_offsets")
        start, step, size = ("start", *self._walk())
        body.lines = [*outside, f"for {start} in range(0, {size}, {step}):", *indented(loop)]
        for value in wide:
            del body.texts[value]
        for accumulator in [*accumulators, *paired]:
            accumulator.after()
        body.lanes = Lanes({}, {})

    def _needed(self, targets: Sequence[Value]) -> list[Value]:
        needed = set(targets)
        for value in reversed(self.unit.program.values):
            if value in needed:
                needed.update(v for v in value.operands if self._is_wide(v))
        return [v for v in self.unit.program.values if v in needed and self._is_wide(v)]

    def _lanes(self, wide: Sequence[Value], plain: Sequence[Value], pairs: Sequence[Pair]) -> Lanes:
        firsts = [pair.folds[0] for pair in pairs]
        return masked_lanes(wide, [*plain, *firsts], self.unit.space.reduced.axes)

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

    def fresh(self, name: str) -> str:
        return self.body.names.fresh(name)


@dataclass
class _Plain:
    """One reduction: an accumulator per lane."""

    loop: _Sweeps
    fold: Value
    name: str = ""

    def before(self) -> list[str]:
        self.name = self.loop.fresh(f"{self.loop.body.name_of(self.fold)}_lanes")
        start = identity(self.fold.fold, self.fold.dtype)
        dtype = self.fold.dtype
        if start == 0:
            return [f"{self.name} = tl.zeros({self.loop.shape}, dtype=tl.{dtype})"]
        text = number(start).text
        return [f"{self.name} = tl.full({self.loop.shape}, {text}, dtype=tl.{dtype})"]

    def inside(self) -> None:
        body = self.loop.body
        operand = body.texts[self.fold.operands[0]].text
        combined = {
            "sum": f"{self.name} += {operand}",
            "max": f"{self.name} = tl.maximum({self.name}, {operand})",
            "min": f"{self.name} = tl.minimum({self.name}, {operand})",
        }
        body.lines.append(combined[self.fold.fold])

    def after(self) -> None:
        body = self.loop.body
        body.settle(self.fold, f"tl.{self.fold.fold}({self.name}, {body.frame.folding})")


@dataclass
class _Softmax:
    """Running maximum and rescaled sum per lane (Milakov and Gimelshein 2018)."""

    loop: _Sweeps
    pair: Online
    top: str = ""
    total: str = ""

    def before(self) -> list[str]:
        self.top = self.loop.fresh("running_max")
        self.total = self.loop.fresh("running_sum")
        return [
            "# A finite start: the difference of two infinities would be NaN.",
            f"{self.top} = tl.full({self.loop.shape}, {LOWEST}, dtype=tl.float32)",
            f"{self.total} = tl.zeros({self.loop.shape}, dtype=tl.float32)",
        ]

    def inside(self) -> None:
        body = self.loop.body
        value = body.texts[self.pair.value].text
        grown = self.loop.fresh("new_max")
        scale = f"tl.exp({self.top} - {grown})"
        body.lines += [
            f"{grown} = tl.maximum({self.top}, {value})",
            f"{self.total} = {self.total} * {scale} + tl.exp({value} - {grown})",
            f"{self.top} = {grown}",
        ]

    def after(self) -> None:
        body = self.loop.body
        folding = body.frame.folding
        body.define(self.pair.top, f"tl.max({self.top}, {folding})")
        top = body.texts[self.pair.top].text
        scaled = f"{self.total} * tl.exp({self.top} - {top})"
        body.settle(self.pair.total, f"tl.sum({scaled}, {folding})")


@dataclass
class _Welford:
    """Mean and squared distance per lane (Welford), merged at the end (Chan)."""

    loop: _Sweeps
    pair: Moments
    count: str = ""
    mean: str = ""
    squares: str = ""

    def before(self) -> list[str]:
        self.count = self.loop.fresh("lane_count")
        self.mean = self.loop.fresh("lane_mean")
        self.squares = self.loop.fresh("lane_squares")
        return [
            "# Welford per lane: sums of squares would cancel for a large mean.",
            *(
                f"{name} = tl.zeros({self.loop.shape}, dtype=tl.float32)"
                for name in (self.count, self.mean, self.squares)
            ),
        ]

    def inside(self) -> None:
        body = self.loop.body
        value = body.texts[self.pair.value].text
        step = self.loop.fresh("delta")
        body.lines += [
            f"{self.count} += tl.where({self.loop.column_mask}, 1.0, 0.0)",
            f"{step} = tl.where({self.loop.column_mask}, {value} - {self.mean}, 0.0)",
            f"{self.mean} += {step} / tl.maximum({self.count}, 1.0)",
            f"{self.squares} += {step} * ({value} - {self.mean})",
        ]

    def after(self) -> None:
        body = self.loop.body
        folding = body.frame.folding
        count = body.frame.count(resolved(self.pair.plain.over)).text
        body.define(self.pair.mean, f"tl.sum({self.count} * {self.mean}, {folding}) / {count}")
        shift = self.loop.fresh("shift")
        body.lines.append(f"{shift} = {self.mean} - {body.texts[self.pair.mean].text}")
        merged = f"{self.squares} + {self.count} * {shift} * {shift}"
        body.settle(self.pair.total, f"tl.sum({merged}, {folding})")
        body.texts[self.pair.plain] = body.texts[self.pair.mean]


def _paired(loop: _Sweeps, pair: Pair) -> _Softmax | _Welford:
    return _Softmax(loop, pair) if isinstance(pair, Online) else _Welford(loop, pair)
