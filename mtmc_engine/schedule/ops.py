"""The operator table: how each ATen operator becomes loads, pointwise functions, reductions.

A rule is a function of the builder and the operator's own arguments, by their ATen names, that
returns the result (or a tuple of results). What has no rule stays a library call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar


class Unsupported(Exception):
    """A group has no template. `str(error)` says why."""


Rule = Callable[..., Any]
R = TypeVar("R", bound=Rule)

RULES: dict[str, Rule] = {}


def rule(*operators: str) -> Callable[[R], R]:
    """Registers a rule for ATen overloads given without "aten."."""

    def register(function: R) -> R:
        for operator in operators:
            RULES[f"aten.{operator}"] = function
        return function

    return register


def require(condition: bool, why: str) -> None:
    """Raises Unsupported with the reason unless the condition holds."""
    if not condition:
        raise Unsupported(why)
