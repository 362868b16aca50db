"""The shrunk twin: the same reference at sizes that a CPU can check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from mtmc_engine.capture.call import invoke, specs_of, tensors_of
from mtmc_engine.capture.draw import resized
from mtmc_engine.capture.export_graph import Dims, Exporter, is_data_dependent
from mtmc_engine.capture.fake import (
    elements_made,
    fake_inputs,
    fake_mode,
    faked,
    parameter_elements,
)
from mtmc_engine.capture.isomorphic import difference
from mtmc_engine.capture.load import Reference
from mtmc_engine.capture.opaque import RECURRENT
from mtmc_engine.capture.shrink import Scale, head_sizes, smaller
from mtmc_engine.capture.source import integer_constants
from mtmc_engine.capture.symbols import evaluate
from mtmc_engine.capture.work import elements_held, elements_of_work
from mtmc_engine.core.errors import MtmcError
from mtmc_engine.core.graph import Graph, TensorSpec
from mtmc_engine.core.task import Twin

# What the interpreter works through in a few seconds: elements of all values together, and work
# in elements read or written.
MOST_HELD = 1 << 19
MOST_WORK = 1 << 22
# Small inputs are drawn from the declared ones up to this many elements of those.
MOST_DRAWN = 1 << 22

# In the order of trial: large enough for several tiles first.
_SCALES = tuple(
    Scale(kept, least, products)
    for kept, least in ((16, 96), (16, 32), (8, 16), (4, 8), (4, 4))
    for products in (False, True)
)


@dataclass(frozen=True)
class Sizes:
    """Small sizes to try: module-level integers, constructor integers, shapes of the tensors."""

    constants: dict[str, int]
    init_args: dict[int, int]
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Original:
    """What a twin is made from and compared with.

    inputs: the call's arguments at the declared shapes, fake tensors. keywords: as in Subject.
    """

    reference: Reference
    inputs: list[Any]
    graph: Graph
    allowed: Dims | None
    seed: int
    keywords: tuple[str, ...] = ()


def is_small(graph: Graph) -> bool:
    """Whether a graph is within the interpreter's budget as it is."""
    return elements_held(graph) <= MOST_HELD and elements_of_work(graph) <= MOST_WORK


def twin_of(original: Original) -> Twin | None:
    """A twin whose graph is isomorphic to the original's and within budget; None if none is found.

    Either only the dimensions that vary are made smaller, or also the module-level integers of
    the file and the integers of its constructor. The second comes first where the inputs are
    large, since then the file itself makes small ones.
    """
    if not original.graph.captured:
        return None
    tried: list[Sizes] = []
    for sizes in _trials(original):
        if sizes is not None and sizes not in tried:
            tried.append(sizes)
            twin = _accepted(original, sizes)
            if twin is not None:
                return twin
    return None


def _trials(original: Original) -> Iterator[Sizes | None]:
    large = sum(spec.numel for spec in specs_of(original.inputs)) > MOST_DRAWN
    if not large:
        yield _by_varying_dimensions(original)
    heads = head_sizes(_integers(original.reference), _dims(original.graph))
    for scale in _SCALES if heads else ():
        yield _by_constants(original, scale, heads)
    for scale in _SCALES:
        yield _by_constants(original, scale, {})
    if large:
        yield _by_varying_dimensions(original)


def _by_varying_dimensions(original: Original) -> Sizes | None:
    inputs = [i.spec for i in original.graph.inputs if i.kind == "input"]
    hints = {
        dim: size
        for spec in inputs
        for dim, size in zip(spec.dims, spec.shape, strict=True)
        if dim.isidentifier()
    }
    small = smaller(hints.values(), _SCALES[0])
    symbols = {name: small[size] for name, size in hints.items()}
    try:
        shapes = [tuple(evaluate(d, symbols) for d in spec.dims) for spec in inputs]
    except NameError:  # a symbol that no dimension shows by itself
        return None
    return Sizes({}, {}, tuple(shapes))


def _by_constants(original: Original, scale: Scale, forced: dict[int, int]) -> Sizes | None:
    reference = original.reference
    known = integer_constants(reference.source.tree)
    init = _init_integers(reference)
    declared = specs_of(original.inputs)
    dims = [size for spec in declared for size in spec.shape]
    small = smaller([*known.values(), *init.values(), *dims], scale, forced)
    constants = {name: small[value] for name, value in known.items() if small[value] != value}
    try:
        again = original.reference.reloaded(constants)
        init_again = _init_integers(again)
        made = specs_of(fake_inputs(again, original.seed, fake_mode()))
    except MtmcError:
        return None
    small |= _observed(original, again, made)
    init_args = {
        position: small[value]
        for position, value in init_again.items()
        if init.get(position) == value and small.get(value, value) != value
    }
    shapes = tuple(tuple(small.get(size, size) for size in spec.shape) for spec in declared)
    return Sizes(constants, init_args, shapes)


def _integers(reference: Reference) -> list[int]:
    known = integer_constants(reference.source.tree)
    return [*known.values(), *_init_integers(reference).values()]


def _dims(graph: Graph) -> set[int]:
    return {size for node in graph.nodes for spec in node.out for size in spec.shape}


def _init_integers(reference: Reference) -> dict[int, int]:
    if reference.form == "function":
        return {}
    return {i: value for i, value in enumerate(reference.init_args()) if type(value) is int}


def _observed(original: Original, after: Reference, made: tuple[TensorSpec, ...]) -> dict[int, int]:
    """What became of integers: of the module's names, the constructor's and the inputs' sizes."""
    before = original.reference
    names = vars(before.module)
    pairs = [(v, vars(after.module).get(k)) for k, v in names.items() if type(v) is int]
    new = _init_integers(after)
    pairs += [(value, new.get(position)) for position, value in _init_integers(before).items()]
    file_specs = specs_of(fake_inputs(before, original.seed, fake_mode()))
    for one, other in zip(file_specs, made, strict=False):
        pairs += list(zip(one.shape, other.shape, strict=False))
    changed: dict[int, int] = {}
    for was, became in pairs:
        if type(became) is int and became != was:
            changed.setdefault(was, became)
    return changed


def _accepted(original: Original, sizes: Sizes) -> Twin | None:
    """The twin of these sizes, if it is within budget, isomorphic, and runs."""
    try:
        reference = (
            original.reference.reloaded(sizes.constants) if sizes.constants else original.reference
        )
        elements = parameter_elements(reference, original.seed, sizes.init_args)
        if elements is None or elements + sum(map(prod, sizes.shapes)) > MOST_HELD:
            return None
        operator = reference.build(original.seed, sizes.init_args)
        mode = fake_mode()
        specs = _with_shapes(original.inputs, sizes.shapes)
        inputs = faked(mode, original.inputs, specs)
        path = str(reference.source.path)
        if not _seems_to_fit(operator, inputs, mode, original.keywords):
            return None
        made = resized(reference.inputs(original.seed), specs, original.seed)

        def run() -> Any:
            return invoke(operator, made, original.keywords)

        graph = (
            Exporter(operator, inputs, mode, path, original.allowed, run, original.keywords)
            .export()
            .graph
        )
    except MtmcError:
        return None
    if difference(original.graph, graph) or not is_small(graph) or not _runs(run):
        return None
    return Twin(sizes.constants, tuple(sorted(sizes.init_args.items())), specs, graph)


def _seems_to_fit(operator: Any, inputs: list[Any], mode: Any, keywords: tuple[str, ...]) -> bool:
    """A quick look before an export: views count here, so the bound is a wide one."""
    if any(isinstance(m, RECURRENT) for m in getattr(operator, "modules", list)()):
        return True  # would be unrolled over time
    try:
        return elements_made(operator, inputs, mode, keywords) <= 4 * MOST_HELD
    except Exception as error:
        return is_data_dependent(error)


def twin_inputs(reference: Reference, twin: Twin, seed: int) -> list[Any]:
    """Real call arguments of the twin; `reference` is loaded with the twin's constants."""
    return resized(reference.inputs(seed), twin.tensors, seed)


def _runs(run: Callable[[], Any]) -> bool:
    """Whether the twin computes something finite."""
    try:
        with torch.no_grad():
            result = run()
    except Exception:
        return False
    return all(bool(torch.isfinite(t).all()) for t in tensors_of(result) if t.is_floating_point())


def _with_shapes(inputs: list[Any], shapes: tuple[tuple[int, ...], ...]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(shape, spec.dtype, tuple(str(size) for size in shape))
        for shape, spec in zip(shapes, specs_of(inputs), strict=True)
    )
