"""The planner without an opinion: every legal action is as probable as any other."""

from __future__ import annotations

import random
from collections.abc import Sequence

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.plan.state import State
from mtmc_engine.planner.seam import ranked


class UniformPlanner:
    """The baseline that any other planner must beat.

    The order of the equally probable actions is drawn anew at each step, reproducibly from the
    seed, the task and the step; stop comes last, as it would end a session by chance.
    """

    name = "uniform"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    async def prepare(self, state: State) -> None:
        """Nothing is needed."""

    async def propose(self, state: State, legal: Sequence[Action]) -> tuple[ScoredAction, ...]:
        shuffled = list(legal)
        random.Random(f"{self._seed} {state.task.digest} {state.step}").shuffle(shuffled)
        shuffled.sort(key=lambda action: action.kind == "stop")
        even = [1 / len(shuffled)] * len(shuffled)
        return ranked(shuffled, even, {"uniform": even})

    async def close(self) -> None:
        """Nothing was started."""
