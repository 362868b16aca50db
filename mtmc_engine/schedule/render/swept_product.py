"""A matrix product whose programs sweep over its columns and keep only what reduces its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mtmc_engine.schedule.ops import require
from mtmc_engine.schedule.render.accumulators import filled, online_start
from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.expressions import Text, number
from mtmc_engine.schedule.render.folds import accumulated, fold_text
from mtmc_engine.schedule.render.frame import Frame, mentions
from mtmc_engine.schedule.render.unit import (
    GroupText,
    Launch,
    Unit,
    assemble,
    indented,
    shared_offsets,
)
from mtmc_engine.schedule.templates.folds import identity
from mtmc_engine.schedule.templates.lanes import feeding, masked_lanes
from mtmc_engine.schedule.templates.passes import Online, pairs_of
from mtmc_engine.schedule.templates.space import depends_on, resolved
from mtmc_engine.schedule.templates.tensors import Value

_SWEEP = "for start in range(0, N, BLOCK_N):"
_MASK = "mask = row_mask & col_mask"
_ROWS = "(BLOCK_M, 1)"


def swept_product(
    unit: Unit, frame: Frame, launch: Launch, before: Sequence[str], lines: Sequence[str]
) -> GroupText:
    """One kernel that computes the product tile by tile along its rows, and reduces each tile.

    before: statements that find the rows. lines: statements that compute one tile as `acc`.
    """
    body = Body(unit.program, replace(frame, prelude=[]), unit.tensors, unit.names)
    product, columns = unit.program.products[0], set(unit.space.reduced.axes)
    wide = [v for v in unit.inside if columns & set(resolved(v.axes))]
    pairs = [pair for pair in pairs_of(unit.program) if isinstance(pair, Online)]
    plain = [f for f in unit.folds if not any(f in pair.folds for pair in pairs)]
    after = depends_on(unit.program, unit.folds)
    roots = [f.operands[0] for f in plain] + [pair.value for pair in pairs]
    wanted = feeding(roots)
    wide = [v for v in wide if v in wanted]
    require(not after & set(wide), "a second sweep over a product")
    body.lines += before
    body.emit(v for v in unit.inside if v not in wide and v not in after)
    parts: list[_Running | _Online] = [_Running(body, fold) for fold in plain]
    parts += [_Online(body, pair) for pair in pairs]
    for part in parts:
        body.lines += part.started()
    outside, body.lines = body.lines, []
    body.lanes = masked_lanes(wide, [*plain, *(p.top for p in pairs)], unit.space.reduced.axes)
    body.texts[product] = Text("acc")
    if product in body.lanes.guarded:
        held = number(body.lanes.guarded[product]).text
        body.lines.append(f"acc = tl.where(col_mask, acc, {held})")
    body.emit(wide)
    for part in parts:
        part.advance()
    masks = [_MASK] if any(mentions(line, "mask") for line in body.lines) else []
    inner = shared_offsets(masks, body.lines, "block_offsets")
    body.lines = [*outside, _SWEEP, *indented([*lines, *inner])]
    for part in parts:
        part.finish()
    body.emit(v for v in unit.inside if v not in wide)
    unit.store_all(body)
    return assemble(unit, body.frame, body, launch)


class _Running:
    """One reduction: the result of the tiles so far, for each row."""

    def __init__(self, body: Body, fold: Value) -> None:
        self.body, self.fold, self.name = body, fold, body.name_of(fold)
        self.best = body.names.fresh("best") if fold.fold in ("argmax", "argmin") else ""

    def started(self) -> list[str]:
        fold, dtype = self.fold.fold, self.fold.dtype
        if not self.best:
            return [f"{self.name} = {filled(_ROWS, identity(fold, dtype), dtype)}"]
        dtype = self.fold.operands[0].dtype
        return [
            f"{self.best} = {filled(_ROWS, identity(fold, dtype), dtype)}",
            f"{self.name} = {filled(_ROWS, 0, 'int32')}",
        ]

    def advance(self) -> None:
        body = self.body
        seen = body.seen_by(self.fold)
        folded = fold_text(self.fold, seen, body.frame.folding, body.helpers)
        if not self.best:
            body.lines.append(accumulated(self.fold.fold, self.name, folded))
            return
        top, better = body.names.fresh("tile_best"), body.names.fresh("better")
        sign = ">" if self.fold.fold == "argmax" else "<"
        body.lines += [
            f"{top} = tl.{self.fold.fold[3:]}({seen}, {body.frame.folding})",
            f"{better} = {top} {sign} {self.best}",
            f"{self.name} = tl.where({better}, start + {folded}, {self.name})",
            f"{self.best} = tl.where({better}, {top}, {self.best})",
        ]

    def finish(self) -> None:
        self.body.texts[self.fold] = Text(self.name)


class _Online:
    """Running maximum and rescaled sum of each row (Milakov and Gimelshein 2018)."""

    def __init__(self, body: Body, pair: Online) -> None:
        self.body, self.pair = body, pair
        self.top, self.total = body.names.fresh("running_max"), body.names.fresh("running_sum")

    def started(self) -> list[str]:
        return online_start(self.top, self.total, _ROWS)

    def advance(self) -> None:
        body, folding = self.body, self.body.frame.folding
        seen, grown = body.seen_by(self.pair.top), body.names.fresh("new_max")
        tile = f"tl.sum(tl.exp({seen} - {grown}), {folding})"
        body.lines += [
            f"{grown} = tl.maximum({self.top}, tl.max({seen}, {folding}))",
            f"{self.total} = {self.total} * tl.exp({self.top} - {grown}) + {tile}",
            f"{self.top} = {grown}",
        ]

    def finish(self) -> None:
        self.body.texts[self.pair.top] = Text(self.top)
        self.body.texts[self.pair.total] = Text(self.total)
