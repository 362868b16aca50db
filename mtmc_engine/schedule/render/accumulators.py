"""What a sweep over a long row accumulates per lane, and how the lanes are folded at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.expressions import number
from mtmc_engine.schedule.render.folds import accumulated, fold_text
from mtmc_engine.schedule.templates.folds import INF, identity
from mtmc_engine.schedule.templates.passes import Moments, Online, Pair
from mtmc_engine.schedule.templates.space import resolved
from mtmc_engine.schedule.templates.tensors import Number, Value, is_float

# The lowest finite float32: where a running maximum starts.
LOWEST = "-3.4028234663852886e38"


def filled(shape: str, start: Number, dtype: str) -> str:
    """A block of equal elements."""
    if start == 0:
        return f"tl.zeros({shape}, dtype=tl.{dtype})"
    return f"tl.full({shape}, {number(start).text}, dtype=tl.{dtype})"


def online_start(top: str, total: str, shape: str) -> list[str]:
    """Where a running maximum and its rescaled sum start."""
    return [
        "# A finite start: the difference of two infinities would be NaN.",
        f"{top} = tl.full({shape}, {LOWEST}, dtype=tl.float32)",
        f"{total} = {filled(shape, 0, 'float32')}",
    ]


class Loop(Protocol):
    """The sweep that an accumulator belongs to.

    shape: of a block. column_mask: true where a position along the row exists. position: the
    variable that holds it. size: of the row.
    """

    body: Body

    @property
    def shape(self) -> str: ...

    @property
    def column_mask(self) -> str: ...

    @property
    def position(self) -> str: ...

    @property
    def size(self) -> str: ...

    def fresh(self, name: str) -> str: ...


@dataclass(frozen=True)
class Part:
    """A quantity that several programs find for their share of a row: its name and its text.

    other: what stands for programs that do not exist.
    """

    name: str
    text: str
    dtype: str
    other: Number


class Accumulator(Protocol):
    """Statements before a sweep, inside of it and after it.

    parts: folds the lanes of one program's share. whole: joins the shares of all, by name.
    """

    def before(self) -> list[str]: ...

    def inside(self) -> None: ...

    def after(self) -> None: ...

    def parts(self) -> list[Part]: ...

    def whole(self, names: Sequence[str]) -> None: ...


@dataclass
class Plain:
    """One reduction: an accumulator per lane.

    Sums down columns go through few lanes and many steps: their rounding errors are carried
    along (Kahan 1965). lost: what the accumulator is too large by; "" elsewhere.
    """

    loop: Loop
    fold: Value
    name: str = ""
    lost: str = ""

    def before(self) -> list[str]:
        self.name = self.loop.fresh(f"{self.loop.body.name_of(self.fold)}_lanes")
        start = identity(self.fold.fold, self.fold.dtype)
        dtype = self.fold.dtype
        if self.fold.fold == "sum" and is_float(dtype) and self.loop.position == "reduced":
            self.lost = self.loop.fresh(f"{self.name}_lost")
            zeros = filled(self.loop.shape, 0, dtype)
            return [f"{self.name} = {zeros}", f"{self.lost} = {zeros}"]
        return [f"{self.name} = {filled(self.loop.shape, start, dtype)}"]

    def inside(self) -> None:
        body = self.loop.body
        operand = body.seen_by(self.fold)
        if not self.lost:
            body.lines.append(accumulated(self.fold.fold, self.name, operand))
            return
        step, grown = self.loop.fresh("step"), self.loop.fresh("grown")
        subtrahend = f"({operand})" if " " in operand else operand
        body.lines += [
            f"{step} = {subtrahend} - {self.lost}",
            f"{grown} = {self.name} + {step}",
            f"{self.lost} = ({grown} - {self.name}) - {step}",
            f"{self.name} = {grown}",
        ]

    def after(self) -> None:
        body = self.loop.body
        body.settle(self.fold, fold_text(self.fold, self.name, body.frame.folding, body.helpers))

    def parts(self) -> list[Part]:
        body = self.loop.body
        text = fold_text(self.fold, self.name, body.frame.folding, body.helpers)
        start = identity(self.fold.fold, self.fold.dtype)
        return [Part(body.name_of(self.fold), text, self.fold.dtype, start)]

    def whole(self, names: Sequence[str]) -> None:
        body = self.loop.body
        body.settle(self.fold, fold_text(self.fold, names[0], body.frame.folding, body.helpers))


@dataclass
class Softmax:
    """Running maximum and rescaled sum per lane (Milakov and Gimelshein 2018)."""

    loop: Loop
    pair: Online
    top: str = ""
    total: str = ""

    def before(self) -> list[str]:
        self.top = self.loop.fresh("running_max")
        self.total = self.loop.fresh("running_sum")
        return online_start(self.top, self.total, self.loop.shape)

    def inside(self) -> None:
        body = self.loop.body
        value = body.seen_by(self.pair.top)
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

    def parts(self) -> list[Part]:
        self.after()
        body, pair = self.loop.body, self.pair
        return [
            Part(body.name_of(pair.top), body.texts[pair.top].text, "float32", -INF),
            Part(body.name_of(pair.total), body.texts[pair.total].text, "float32", 0.0),
        ]

    def whole(self, names: Sequence[str]) -> None:
        self.top, self.total = names
        self.after()


@dataclass
class Welford:
    """Mean and squared distance per lane (Welford), merged at the end (Chan)."""

    loop: Loop
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

    def parts(self) -> list[Part]:
        body, folding = self.loop.body, self.loop.body.frame.folding
        words = ("count", "mean", "squares", "shift")
        count, mean, squares, shift = map(self.loop.fresh, words)
        body.lines += [
            f"{count} = tl.sum({self.count}, {folding})",
            f"{mean} = tl.sum({self.count} * {self.mean}, {folding}) / tl.maximum({count}, 1.0)",
            f"{shift} = {self.mean} - {mean}",
            f"{squares} = tl.sum({self.squares} + {self.count} * {shift} * {shift}, {folding})",
        ]
        return [Part(name, name, "float32", 0.0) for name in (count, mean, squares)]

    def whole(self, names: Sequence[str]) -> None:
        self.count, self.mean, self.squares = names
        self.after()


@dataclass
class Extreme:
    """The position of an extreme: per lane the best value and where it was first seen."""

    loop: Loop
    fold: Value
    best: str = ""
    at: str = ""

    def before(self) -> list[str]:
        self.best = self.loop.fresh("best_lanes")
        self.at = self.loop.fresh("position_lanes")
        start, dtype = (
            number(identity(self.fold.fold, self._operand.dtype)).text,
            self._operand.dtype,
        )
        return [
            f"{self.best} = tl.full({self.loop.shape}, {start}, dtype=tl.{dtype})",
            f"{self.at} = tl.zeros({self.loop.shape}, dtype=tl.int32)",
        ]

    @property
    def _operand(self) -> Value:
        return self.fold.operands[0]

    def inside(self) -> None:
        body = self.loop.body
        value = body.seen_by(self.fold)
        better = self.loop.fresh("better")
        sign = ">" if self.fold.fold == "argmax" else "<"
        body.lines += [
            f"{better} = {value} {sign} {self.best}",
            f"{self.at} = tl.where({better}, {self.loop.position}, {self.at})",
            f"{self.best} = tl.where({better}, {value}, {self.best})",
        ]

    def after(self) -> None:
        body = self.loop.body
        folding = body.frame.folding
        top = self.loop.fresh("best")
        body.lines.append(f"{top} = tl.{self.fold.fold[3:]}({self.best}, {folding})")
        first = f"tl.where({self.best} == {top}, {self.at}, {self.loop.size})"
        body.settle(self.fold, f"tl.min({first}, {folding})")

    def parts(self) -> list[Part]:
        self.after()
        body, dtype = self.loop.body, self._operand.dtype
        start = identity(self.fold.fold, dtype)
        best = f"tl.{self.fold.fold[3:]}({self.best}, {body.frame.folding})"
        return [
            Part("best", best, dtype, start),
            Part(body.name_of(self.fold), body.texts[self.fold].text, "int32", 0),
        ]

    def whole(self, names: Sequence[str]) -> None:
        self.best, self.at = names
        self.after()


def accumulator_of(loop: Loop, fold: Value) -> Accumulator:
    """The accumulator of one reduction."""
    return Extreme(loop, fold) if fold.fold in ("argmax", "argmin") else Plain(loop, fold)


def paired(loop: Loop, pair: Pair) -> Accumulator:
    """The accumulator of two reductions that share a sweep."""
    return Softmax(loop, pair) if isinstance(pair, Online) else Welford(loop, pair)
