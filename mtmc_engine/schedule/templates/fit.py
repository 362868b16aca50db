"""How a group's operands are walked through: as they lie in memory where a template takes that."""

from __future__ import annotations

from collections.abc import Sequence

from mtmc_engine.core.graph import Graph
from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.templates.space import Space, product_space, space_of
from mtmc_engine.schedule.templates.tensors import Order
from mtmc_engine.schedule.templates.trace import Trace, trace

Fit = tuple[Trace, Space]


def fitted(graph: Graph, nodes: Sequence[str]) -> Fit:
    """The group's tensor program and its iteration space. Raises Unsupported where it has none.

    Operands that lie in another order than their dimensions, channels last say, are read so, or
    all in the order of the result, or are made dense first: whichever walks through the longest
    stretches of memory with the fewest copies.
    """
    program = trace(graph, nodes)
    own = {name: order for name, spec in program.specs.items() if (order := spec.order)}
    result = program.outputs[0].spec.order
    picked = any(value.source and value.kind != "load" for value in program.values)
    if program.products or picked or not (own or result):
        return program, _space(program)
    ranked = {name: result for name, spec in program.specs.items() if _fits(result, spec.shape)}
    fits: list[tuple[int, Fit]] = []
    why: Unsupported | None = None
    for orders in (own, ranked, {}):
        try:
            tried = trace(graph, nodes, orders)
            space = _space(tried)
        except Unsupported as error:
            why = error
            continue
        copies = sum(orders.get(name, ()) != own.get(name, ()) for name in tried.loads)
        fits.append((copies + _stretches(space), (tried, space)))
    if not fits:
        assert why is not None
        raise why
    return min(fits, key=lambda fit: fit[0])[1]


def _fits(order: Order, shape: Sequence[int]) -> bool:
    return bool(order) and len(order) == len(shape)


def _space(program: Trace) -> Space:
    return product_space(program) if program.products else space_of(program)


def _stretches(space: Space) -> int:
    return sum(len(block.runs) for block in space.blocks)
