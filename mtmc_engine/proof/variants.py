"""The cases of a proof: shapes, layouts and distributions that a candidate is called with."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.core.task import Policy, Task, Twin
from mtmc_engine.proof.space import SMALL_ELEMENTS, Shapes, Space
from mtmc_engine.proof.wire import Case, Compiled, Distribution, Launch, Layout

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
_MOST_BLOCKS = 4
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
    left_out: declared input sets of which not even a small likeness is among the cases.
    """

    cases: tuple[Case, ...]
    twin: Twin | None
    scope: str
    largest: int
    left_out: tuple[str, ...] = ()


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
    space = Space(specs, twin.graph if twin else task.graph)
    writer = _Writer(specs, seed)
    left_out: tuple[str, ...] = ()
    if runs_declared:
        for tensors in declared:
            _add_declared(writer, tensors, task.device.present)
    if space.symbols or not task.device.present:
        blocks = _blocks(compiled.launches)
        _add_small(writer, space, task.policy, not runs_declared)
        if not runs_declared:
            left_out = _add_other_sets(writer, space, task, twin)
        _add_around(writer, space, blocks, task.policy)
        if task.program:  # paths for sizes that every block divides
            writer.add(space.shapes(space.divisible(blocks)), "contiguous", "own", optional=True)
            writer.next_group()
    elif space.elements({}) <= _FIXED_ELEMENTS:  # nothing may vary: all on the declared shapes
        _add_distributions(writer, space.shapes({}), task.policy.nan)
    largest = max(math.prod(shape) for case in writer.cases for shape in case.shapes or ((),))
    scope = _scope(task, twin, runs_declared, largest)
    return Plan(tuple(writer.cases), twin, scope, largest, left_out)


def _is_small_unshrunk(task: Task) -> bool:
    """Whether a user's own Triton program is proven at its own constants, with few rows.

    Its block sizes do not shrink with a twin, so that its loops would turn only once.
    """
    if not task.program:
        return False
    specs = task.inputs[0].tensors
    space = Space(specs, task.graph)
    weights = sum(v.spec.numel for v in task.graph.inputs if v.kind in ("parameter", "buffer"))
    return space.elements(space.small()) <= SMALL_ELEMENTS and weights <= _SMALL_WEIGHTS


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


def _add_other_sets(
    writer: _Writer, space: Space, task: Task, twin: Twin | None
) -> tuple[str, ...]:
    """The declared input sets after the first: as they are where they are small, else shrunk.

    Returns the labels of those for which there is neither.
    """
    original = space if twin is None else Space(task.inputs[0].tensors, task.graph)
    left_out = []
    for one in task.inputs[1:]:
        shapes = tuple(spec.shape for spec in one.tensors)
        small = sum(map(math.prod, shapes)) <= _UNKNOWN_ELEMENTS
        if original.leads_to(shapes):
            sizes = space.sizes_of(shapes)
            made = space.shapes(sizes if small else space.small(sizes))
        elif small and twin is None:
            made = shapes
        else:
            left_out.append(one.label)
            continue
        writer.add(made, "contiguous", "own", own=made == shapes, repeat=True)
        writer.next_group()
    return tuple(left_out)


def _add_small(writer: _Writer, space: Space, policy: Policy, own: bool) -> None:
    """Contents of every sort in small shapes. own: whether these stand for the declared ones."""
    base = space.shapes(space.small())
    writer.add(base, "contiguous", "own", own=own, repeat=True)
    _add_distributions(writer, base, policy.nan)
    writer.add(base, "contiguous", "own", reseed=True, repeat=True)
    writer.next_group()
    writer.add(space.shapes(space.even()), "contiguous", "own")
    writer.next_group()


def _add_around(writer: _Writer, space: Space, blocks: tuple[int, ...], policy: Policy) -> None:
    """Boundary shapes, layouts and empty tensors."""
    small = space.small()
    base = space.shapes(small)
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


def _add_distributions(writer: _Writer, shapes: Shapes, nan: str) -> None:
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
        shapes: Shapes,
        layout: Layout,
        distribution: Distribution,
        outputs: Shapes = (),
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

    def _offset(self, shapes: Shapes, layout: Layout) -> int:
        """What tells contents of one group from those of another: the same for every candidate,
        whose block sizes decide which groups there are.
        """
        return zlib.crc32(repr((shapes, layout)).encode()) % 997 if self._group else 0


def _key(case: Case) -> str:
    """Groups and options only matter to who calls the candidate."""
    same = msgspec.structs.replace(case, group=0, optional=False)
    return hashlib.sha256(msgspec.json.encode(same)).hexdigest()[:16]


def _name(shapes: Shapes, layout: Layout, distribution: Distribution) -> str:
    sizes = " and ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)
    parts = [sizes or "no tensors"]
    parts += [layout] if layout != "contiguous" else []
    parts += [distribution] if distribution != "own" else []
    return ", ".join(parts)


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


def _layouts(shapes: Shapes) -> Iterator[Layout]:
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
