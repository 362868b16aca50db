"""What every planner offers, and the arithmetic of probabilities that they share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.plan.state import State


class Planner(Protocol):
    """Ranks the legal actions of a state.

    name: for screens and the journal; of a mixture also its weights.
    """

    @property
    def name(self) -> str: ...

    async def prepare(self, state: State) -> None:
        """Load and read ahead what decisions on this task will need; a call is optional."""

    async def propose(self, state: State, legal: Sequence[Action]) -> tuple[ScoredAction, ...]:
        """All of `legal`, at least one, best first; their probabilities sum to 1."""

    async def close(self) -> None:
        """End what the planner started; it is of no further use."""


def softmax(scores: Sequence[float], temperature: float = 1.0) -> tuple[float, ...]:
    """Probabilities proportional to exp(score / temperature)."""
    largest = max(scores)
    weights = [math.exp((score - largest) / temperature) for score in scores]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def ranked(
    legal: Sequence[Action],
    probabilities: Sequence[float],
    parts: dict[str, Sequence[float]],
) -> tuple[ScoredAction, ...]:
    """Actions with their probabilities, best first; of equals the earlier one.

    parts: by source, one probability an action.
    """
    scored = [
        ScoredAction(action, probability, {name: values[at] for name, values in parts.items()})
        for at, (action, probability) in enumerate(zip(legal, probabilities, strict=True))
    ]
    return tuple(sorted(scored, key=lambda option: -option.probability))
