"""Shapes that a call's tensors can have: functions of the dimensions that vary together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from mtmc_engine.core.graph import Graph, TensorSpec, refs
from mtmc_engine.proof.ties import tied, ties

Sizes = dict[str, int]
Shapes = tuple[tuple[int, ...], ...]

SMALL_ELEMENTS = 1 << 18
_SYMBOL = re.compile(r"\bs\d+\b")
# Of an expression, other than the two functions in it.
_NAME = re.compile(r"\b(?!max\b|min\b)[A-Za-z_]\w*")
# Sizes that stand in for large ones where the interpreter runs: uneven, so that masks matter.
_SMALL_LAST = 67
_SMALL_OTHERS = (19, 7, 5, 3)
_EVEN = (16, 32, 8, 24)
_PRIMES = (17, 31, 13, 11, 23, 7)


class Space:
    """Shapes of the call's tensors as functions of the dimensions that vary together."""

    def __init__(self, specs: tuple[TensorSpec, ...], graph: Graph) -> None:
        known = ties(graph)
        dims = tuple(tuple(tied(d, known) for d in row) for row in _dims(graph, specs))
        self.dims = dims
        self._outputs = tuple(tuple(tied(d, known) for d in row) for row in _output_dims(graph))
        found = (symbol for row in dims for text in row for symbol in _SYMBOL.findall(text))
        self.symbols: tuple[str, ...] = tuple(dict.fromkeys(found))
        self.declared = self.sizes_of(tuple(spec.shape for spec in specs))
        self.last = {s for row in dims if row for s in _SYMBOL.findall(row[-1])}

    def sizes_of(self, shapes: Shapes) -> Sizes:
        """Each symbol's size where the tensors have these shapes.

        1 where no expression of it alone tells.
        """
        pairs = [
            pair
            for row, shape in zip(self.dims, shapes, strict=True)
            for pair in zip(row, shape, strict=True)
        ]
        return {symbol: _solved(symbol, pairs) for symbol in self.symbols}

    def leads_to(self, shapes: Shapes) -> bool:
        """Whether some sizes give the tensors these shapes."""
        ranks = [len(row) for row in self.dims] == [len(shape) for shape in shapes]
        return ranks and self.shapes(self.sizes_of(shapes)) == shapes

    def shapes(self, sizes: Sizes) -> Shapes:
        return tuple(tuple(evaluate(text, sizes) for text in row) for row in self.dims)

    def outputs(self, sizes: Sizes) -> Shapes:
        """Shapes of the result's tensors; () where the graph does not tell."""
        if any(s not in sizes for row in self._outputs for d in row for s in _NAME.findall(d)):
            return ()
        try:
            return tuple(tuple(evaluate(text, sizes) for text in row) for row in self._outputs)
        except ZeroDivisionError:  # "s0*s1 // s1" of an empty tensor
            return ()

    def elements(self, sizes: Sizes) -> int:
        return sum(math.prod(shape) for shape in self.shapes(sizes))

    def small(self, declared: Sizes | None = None) -> Sizes:
        """Small uneven sizes; those of `declared`, or of the first input set, where smaller."""
        others = iter(_SMALL_OTHERS)
        declared = declared or self.declared
        sizes = {
            symbol: min(
                declared[symbol],
                _SMALL_LAST if symbol in self.last else next(others, 2),
            )
            for symbol in self.symbols
        }
        for symbol in sorted(self.symbols, key=lambda s: -sizes[s]):
            while self.elements(sizes) > SMALL_ELEMENTS and sizes[symbol] > 2:
                sizes[symbol] = max(2, sizes[symbol] // 2)
        return sizes

    def even(self) -> Sizes:
        """Small round sizes, alike where the declared ones are: squares stay squares."""
        alike = dict(zip(dict.fromkeys(self.declared.values()), _cycle(_EVEN, 16), strict=False))
        return {s: min(size, alike.get(size, _EVEN[0])) for s, size in self.declared.items()}

    def divisible(self, blocks: tuple[int, ...]) -> Sizes:
        """Sizes that the blocks divide, twice the largest one where that is small enough."""
        for size in (2 * blocks[0], *blocks):
            sizes = dict.fromkeys(self.symbols, size)
            if self.elements(sizes) <= SMALL_ELEMENTS:
                return sizes
        return self.even()

    def boundaries(self, small: Sizes, blocks: tuple[int, ...]) -> Iterator[Sizes]:
        """Sizes around 1 and around each block, one dimension at a time, and all prime."""
        if not self.symbols:
            return
        yield dict(zip(self.symbols, _cycle(_PRIMES, len(self.symbols)), strict=True))
        yield dict.fromkeys(self.symbols, 1)
        for symbol in self.symbols:
            around = [1, 2, *(b + d for b in blocks for d in (-1, 0, 1))]
            for size in dict.fromkeys(n for n in around if n > 0):
                sizes = {**small, symbol: size}
                if self.elements(sizes) > SMALL_ELEMENTS:
                    sizes = {name: min(n, 3) for name, n in small.items()} | {symbol: size}
                if self.elements(sizes) <= 2 * SMALL_ELEMENTS:
                    yield sizes


def _solved(symbol: str, pairs: list[tuple[str, int]]) -> int:
    """The size at which each expression of a symbol alone has the value beside it."""
    for text, size in pairs:
        if text == symbol:
            return size
    for text, size in pairs:
        if set(_SYMBOL.findall(text)) == {symbol}:
            return next((n for n in range(size + 1) if evaluate(text, {symbol: n}) == size), 1)
    return 1


def _cycle(values: tuple[int, ...], count: int) -> list[int]:
    return [values[i % len(values)] for i in range(count)]


def _dims(graph: Graph, specs: tuple[TensorSpec, ...]) -> tuple[tuple[str, ...], ...]:
    """Size expressions of the call's tensors; plain numbers where the graph does not tell."""
    inputs = [value.spec for value in graph.inputs if value.kind == "input"]
    if len(inputs) == len(specs) and all(
        len(known.dims) == len(spec.shape) for known, spec in zip(inputs, specs, strict=True)
    ):
        return tuple(known.dims for known in inputs)
    return tuple(tuple(str(size) for size in spec.shape) for spec in specs)


def _output_dims(graph: Graph) -> tuple[tuple[str, ...], ...]:
    """Size expressions of what the graph returns; none where one of them is not known."""
    if not graph.captured:
        return ()
    try:
        specs = [graph.value(name) for name in refs(graph.outputs)]
    except (KeyError, IndexError):  # a number computed from sizes
        return ()
    known = all(len(spec.dims) == len(spec.shape) for spec in specs)
    return tuple(spec.dims for spec in specs) if known else ()


def evaluate(expression: str, sizes: Sizes) -> int:
    """The value of a `dims` expression such as "s0*128" at given sizes."""
    if expression.isdigit():
        return int(expression)
    return int(eval(expression, {"__builtins__": {"max": max, "min": min}}, dict(sizes)))
