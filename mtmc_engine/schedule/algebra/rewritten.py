"""The graph of a program: the captured one after the rewritings of its schedule."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from mtmc_engine.core.graph import Graph
from mtmc_engine.core.program import Rewrite
from mtmc_engine.schedule.algebra import cancelling, identities, idioms, layouts, products
from mtmc_engine.schedule.algebra.edit import applied
from mtmc_engine.schedule.algebra.rules import RULES
from mtmc_engine.schedule.algebra.site import Site
from mtmc_engine.schedule.classes import word_of
from mtmc_engine.schedule.identity import Same

# Importing these fills the table of rules, in the order in which they are tried.
RULE_MODULES = (cancelling, identities, idioms, layouts, products)
# What needs more rewritings than this is rewritten in several steps.
MOST_REWRITES = 200


def rewritten(graph: Graph, rewrites: tuple[Rewrite, ...]) -> Graph:
    """The graph after these rewritings, in order. Raises ValueError where one does not apply."""
    return _rewritten(Same(graph), rewrites) if rewrites else graph


@lru_cache(maxsize=256)
def _rewritten(same: Same[Graph], rewrites: tuple[Rewrite, ...]) -> Graph:
    *before, last = rewrites
    graph = rewritten(same.value, tuple(before))
    node = next((node for node in graph.nodes if node.name == last.node), None)
    edit = RULES[last.rule].apply(Site.of(graph, node)) if node is not None else None
    if edit is None:
        raise ValueError(f"the rule {last.rule} does not apply to {last.node}")
    return applied(graph, edit)


def found(
    kind: str, graph: Graph, before: tuple[Rewrite, ...], nodes: Iterable[str]
) -> tuple[Rewrite, ...]:
    """Rewritings of a kind of step that start from these nodes, until none applies any more.

    graph: the captured one. before: the rewritings that were made already.
    """
    return _found(kind, Same(graph), before, frozenset(nodes))


@lru_cache(maxsize=4096)
def _found(
    kind: str, same: Same[Graph], before: tuple[Rewrite, ...], inside: frozenset[str]
) -> tuple[Rewrite, ...]:
    made: list[Rewrite] = []
    while len(made) < MOST_REWRITES:
        now = rewritten(same.value, (*before, *made))
        next_one = _first(kind, now, inside)
        if next_one is None:
            break
        made.append(next_one)
    return tuple(made)


def _first(kind: str, graph: Graph, inside: frozenset[str]) -> Rewrite | None:
    nodes = [node for node in graph.nodes if node.name in inside or node.origin in inside]
    for rule in (rule for rule in RULES.values() if rule.kind == kind):
        for node in nodes:
            fits = not rule.at or word_of(node) in rule.at
            if fits and rule.apply(Site.of(graph, node)) is not None:
                return Rewrite(rule.name, node.name)
    return None
