"""The table of rules: each says where it may start and what it does there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mtmc_engine.schedule.algebra.edit import Edit
from mtmc_engine.schedule.algebra.site import Site

# The edit that a rule makes at a node; None where it does not apply.
Apply = Callable[[Site], Edit | None]


@dataclass(frozen=True)
class Rule:
    """One rewriting.

    says: what it does, as a clause of a reason. at: bare names of the operators that it may start
    from, () for any. kind: of the steps that make it.
    """

    name: str
    says: str
    apply: Apply
    at: frozenset[str] = frozenset()
    kind: str = "simplify"


RULES: dict[str, Rule] = {}


def rule(
    name: str, says: str, at: Iterable[str] = (), kind: str = "simplify"
) -> Callable[[Apply], Apply]:
    """Registers a rule; those registered first are tried first."""

    def register(apply: Apply) -> Apply:
        RULES[name] = Rule(name, says, apply, frozenset(at), kind)
        return apply

    return register
