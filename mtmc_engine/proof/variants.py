"""The cases of a proof: shapes, layouts and distributions that a candidate is called with."""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mtmc_engine.core.graph import Graph, TensorSpec, refs
from mtmc_engine.core.task import Policy, Task, Twin
from mtmc_engine.proof.ties import tied, ties
from mtmc_engine.proof.wire import Case, Compiled, Distribution, Launch, Layout

Sizes = dict[str, int]

_DISTRIBUTIONS: tuple[Distribution, ...] = (
    "normal",
    "times 3",
    "times 100",
    "times 0.01",
    "negated",
    "large offset",
    "constant rows",
    "zero rows",
)
# On a GPU the declared shapes are large: one further distribution there, the others on small ones.
_DECLARED_DISTRIBUTIONS: tuple[Distribution, ...] = ("own", "times 3")
_HALF_TYPES = {"float16", "bfloat16"}
_SYMBOL = re.compile(r"\bs\d+\b")
# Of an expression, other than the two functions in it.
_NAME = re.compile(r"\b(?!max\b|min\b)[A-Za-z_]\w*")
# Sizes that stand in for large ones where the interpreter runs: uneven, so that masks matter.
_SMALL_LAST = 67
_SMALL_OTHERS = (19, 7, 5, 3)
_EVEN = (16, 32, 8, 24)
_PRIMES = (17, 31, 13, 11, 23, 7)
_MOST_BLOCKS = 4
_SMALL_ELEMENTS = 1 << 18
# Where no dimension may vary, a GPU sees all distributions up to this many elements.
_FIXED_ELEMENTS = 1 << 25
# Declared shapes run in the interpreter up to this many programs and elements.
_INTERPRETED_PROGRAMS = 192
_INTERPRETED_ELEMENTS = 1 << 21
_SMALL_WEIGHTS = 1 << 20
_UNKNOWN_ELEMENTS = 1 << 14


@dataclass(frozen=True)
class Plan:
    """The cases of a proof. twin: built small where that is set.

    scope: in words, what the values were proven on. largest: most elements of one input.
    """

    cases: tuple[Case, ...]
    twin: Twin | None
    scope: str
    largest: int


def plan_cases(task: Task, compiled: Compiled, seed: int, shrink: bool = True) -> Plan:
    """The cases for a task and a candidate whose kernels were compiled so.

    On a GPU: every declared input set, then small shapes. Without: small shapes, or the twin's,
    and the declared ones where the interpreter can run them. shrink: whether a twin may be used.
    """
    declared = [one.tensors for one in task.inputs]
    runs_declared = task.device.present or _interpretable(declared, compiled)
    shrinks = shrink and not runs_declared and not _is_small_unshrunk(task)
    twin = task.twin if shrinks else None
    specs = twin.tensors if twin else task.inputs[0].tensors
    space = _Space(specs, twin.graph if twin else task.graph)
    writer = _Writer(specs, seed)
    if runs_declared:
        for tensors in declared:
            _add_declared(writer, tensors, task.device.present)
    if space.symbols or not task.device.present:
        blocks = _blocks(compiled.launches)
        _add_small(writer, space, blocks, task.policy, not runs_declared)
        if task.program:  # paths for sizes that every block divides
            writer.add(space.shapes(space.divisible(blocks)), "contiguous", "own", optional=True)
            writer.next_group()
    elif space.elements({}) <= _FIXED_ELEMENTS:  # nothing may vary: all on the declared shapes
        _add_distributions(writer, space.shapes({}), task.policy.nan)
    largest = max(math.prod(shape) for case in writer.cases for shape in case.shapes or ((),))
    scope = _scope(task, twin, runs_declared, largest)
    return Plan(tuple(writer.cases), twin, scope, largest)


def _is_small_unshrunk(task: Task) -> bool:
    """Whether a user's own Triton program is proven at its own constants, with few rows.

    Its block sizes do not shrink with a twin, so that its loops would turn only once.
    """
    if not task.program:
        return False
    specs = task.inputs[0].tensors
    space = _Space(specs, task.graph)
    weights = sum(v.spec.numel for v in task.graph.inputs if v.kind in ("parameter", "buffer"))
    return space.elements(space.small()) <= _SMALL_ELEMENTS and weights <= _SMALL_WEIGHTS


def _scope(task: Task, twin: Twin | None, runs_declared: bool, largest: int) -> str:
    if runs_declared:
        return "the declared shapes and small ones" if task.vary else "the declared shapes"
    if twin is not None:
        return f"a shrunk twin, not above {largest} elements"
    return f"small shapes, not above {largest} elements"


def _add_declared(writer: _Writer, tensors: tuple[TensorSpec, ...], present: bool) -> None:
    shapes = tuple(spec.shape for spec in tensors)
    kinds = _DECLARED_DISTRIBUTIONS if present else _DECLARED_DISTRIBUTIONS[:1]
    for distribution in kinds:
        own = distribution == "own"
        writer.add(shapes, "contiguous", distribution, own=own, repeat=own)
    if present:
        writer.next_group()
        writer.add(shapes, "sliced", "own")
    writer.next_group()


def _add_small(
    writer: _Writer, space: _Space, blocks: tuple[int, ...], policy: Policy, own: bool
) -> None:
    """own: whether the small shapes stand for the declared ones."""
    small = space.small()
    base = space.shapes(small)
    writer.add(base, "contiguous", "own", own=own, repeat=True)
    _add_distributions(writer, base, policy.nan)
    writer.add(base, "contiguous", "own", reseed=True, repeat=True)
    writer.next_group()
    writer.add(space.shapes(space.even()), "contiguous", "own")
    writer.next_group()
    for sizes in space.boundaries(small, blocks):
        shapes, outputs = space.shapes(sizes), space.outputs(sizes)
        writer.add(shapes, "contiguous", "own", outputs, optional=True)
        writer.next_group()
    for layout in _layouts(base):
        if layout == "expanded" and policy.inplace:  # cannot be written to
            continue
        writer.add(base, layout, "own")
        writer.next_group()
    for symbol in space.symbols:
        empty = space.shapes({**small, symbol: 0})
        outputs = space.outputs({**small, symbol: 0})
        writer.add(empty, "contiguous", "own", outputs, advisory=True)
        writer.next_group()


def _add_distributions(writer: _Writer, shapes: tuple[tuple[int, ...], ...], nan: str) -> None:
    """Other contents in the same tensors. nan: the policy; "report" makes its case advisory."""
    kinds = {spec.dtype for spec in writer.specs if "float" in spec.dtype}
    if not kinds:
        return
    for distribution in _DISTRIBUTIONS:
        writer.add(shapes, "contiguous", distribution)
    if kinds & _HALF_TYPES:
        writer.add(shapes, "contiguous", "near the range's end")
    if nan != "ignore":
        writer.add(shapes, "contiguous", "with NaN", advisory=nan == "report")


@dataclass
class _Writer:
    """Numbers and names cases; a shape, layout and distribution is taken once."""

    specs: tuple[TensorSpec, ...]
    seed: int
    cases: list[Case] = field(default_factory=list)
    _group: int = 0

    def next_group(self) -> None:
        self._group += 1

    def add(
        self,
        shapes: tuple[tuple[int, ...], ...],
        layout: Layout,
        distribution: Distribution,
        outputs: tuple[tuple[int, ...], ...] = (),
        **flags: Any,
    ) -> None:
        """Adds a case, once. flags: those of Case, and `reseed` for other contents."""
        reseed = flags.pop("reseed", False)
        name = _name(shapes, layout, distribution) + (", other contents" if reseed else "")
        if any(case.name == name for case in self.cases):
            return
        case = Case(
            name,
            shapes,
            tuple(spec.dtype for spec in self.specs),
            layout,
            distribution,
            self.seed + (1000 if reseed else self._offset(shapes, layout)),
            self._group,
            outputs=outputs,
            **flags,
        )
        self.cases.append(msgspec.structs.replace(case, key=_key(case)))

    def _offset(self, shapes: tuple[tuple[int, ...], ...], layout: Layout) -> int:
        """What tells contents of one group from those of another: the same for every candidate,
        whose block sizes decide which groups there are.
        """
        return zlib.crc32(repr((shapes, layout)).encode()) % 997 if self._group else 0


def _key(case: Case) -> str:
    """Groups and options only matter to who calls the candidate."""
    same = msgspec.structs.replace(case, group=0, optional=False)
    return hashlib.sha256(msgspec.json.encode(same)).hexdigest()[:16]


def _name(shapes: tuple[tuple[int, ...], ...], layout: Layout, distribution: Distribution) -> str:
    sizes = " and ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)
    parts = [sizes or "no tensors"]
    parts += [layout] if layout != "contiguous" else []
    parts += [distribution] if distribution != "own" else []
    return ", ".join(parts)


class _Space:
    """Shapes of the call's tensors as functions of the dimensions that vary together."""

    def __init__(self, specs: tuple[TensorSpec, ...], graph: Graph) -> None:
        known = ties(graph)
        dims = tuple(tuple(tied(d, known) for d in row) for row in _dims(graph, specs))
        self.dims = dims
        self._outputs = tuple(tuple(tied(d, known) for d in row) for row in _output_dims(graph))
        found = (symbol for row in dims for text in row for symbol in _SYMBOL.findall(text))
        self.symbols: tuple[str, ...] = tuple(dict.fromkeys(found))
        self.declared = {symbol: self._solve(symbol, specs) for symbol in self.symbols}
        self.last = {s for row in dims if row for s in _SYMBOL.findall(row[-1])}

    def _solve(self, symbol: str, specs: tuple[TensorSpec, ...]) -> int:
        """The symbol's declared size; 1 where no expression of it alone tells."""
        for row, spec in zip(self.dims, specs, strict=True):
            for text, size in zip(row, spec.shape, strict=True):
                if text == symbol:
                    return size
        for row, spec in zip(self.dims, specs, strict=True):
            for text, size in zip(row, spec.shape, strict=True):
                if set(_SYMBOL.findall(text)) == {symbol}:
                    tries = (n for n in range(size + 1) if evaluate(text, {symbol: n}) == size)
                    return next(tries, 1)
        return 1

    def shapes(self, sizes: Sizes) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(evaluate(text, sizes) for text in row) for row in self.dims)

    def outputs(self, sizes: Sizes) -> tuple[tuple[int, ...], ...]:
        """Shapes of the result's tensors; () where the graph does not tell."""
        if any(s not in sizes for row in self._outputs for d in row for s in _NAME.findall(d)):
            return ()
        try:
            return tuple(tuple(evaluate(text, sizes) for text in row) for row in self._outputs)
        except ZeroDivisionError:  # "s0*s1 // s1" of an empty tensor
            return ()

    def elements(self, sizes: Sizes) -> int:
        return sum(math.prod(shape) for shape in self.shapes(sizes))

    def small(self) -> Sizes:
        """Small uneven sizes; the declared ones where they are smaller."""
        others = iter(_SMALL_OTHERS)
        sizes = {
            symbol: min(
                self.declared[symbol],
                _SMALL_LAST if symbol in self.last else next(others, 2),
            )
            for symbol in self.symbols
        }
        for symbol in sorted(self.symbols, key=lambda s: -sizes[s]):
            while self.elements(sizes) > _SMALL_ELEMENTS and sizes[symbol] > 2:
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
            if self.elements(sizes) <= _SMALL_ELEMENTS:
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
                if self.elements(sizes) > _SMALL_ELEMENTS:
                    sizes = {name: min(n, 3) for name, n in small.items()} | {symbol: size}
                if self.elements(sizes) <= 2 * _SMALL_ELEMENTS:
                    yield sizes


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


def _blocks(launches: tuple[Launch, ...]) -> tuple[int, ...]:
    """Block sizes among the kernels' compile-time constants, the largest first."""
    values = {
        value
        for launch in launches
        for value in launch.constants.values()
        if isinstance(value, int) and not isinstance(value, bool) and value >= 4
    }
    return tuple(sorted(values, reverse=True)[:_MOST_BLOCKS]) or (128, 32)


def _interpretable(declared: list[tuple[TensorSpec, ...]], compiled: Compiled) -> bool:
    """Whether the declared shapes are within what the interpreter does in a second or so."""
    elements = max(sum(spec.numel for spec in tensors) for tensors in declared)
    if not compiled.ahead:
        return elements <= _UNKNOWN_ELEMENTS
    programs = sum(math.prod(launch.grid) for launch in compiled.launches)
    return elements <= _INTERPRETED_ELEMENTS and programs <= _INTERPRETED_PROGRAMS


def _layouts(shapes: tuple[tuple[int, ...], ...]) -> Iterator[Layout]:
    """Layouts that change where at least one element lies."""
    rank = max((len(shape) for shape in shapes), default=0)
    if rank >= 2:
        yield "transposed"
    if rank >= 3:
        yield "swapped"
    if rank >= 1:
        yield "sliced"
    if sum(len(shape) >= 2 for shape in shapes) >= 2 and len(shapes[0]) >= 2:
        yield "mixed"
    if rank >= 2:
        yield "expanded"
