"""A language model's opinion and the roofline's evidence in one ranking."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.core.errors import MtmcError, UsageError, WorkerDied
from mtmc_engine.plan.state import State
from mtmc_engine.planner.llama import LlamaPlanner
from mtmc_engine.planner.roofline import RooflinePlanner
from mtmc_engine.planner.seam import ranked, softmax

_SMALLEST = 1e-30  # so that no probability's logarithm is infinite


class MixedPlanner:
    """p ∝ p_llama ** weight · p_roofline ** (1 − weight), both parts shown.

    weight: 0 to 1; 1 is the model alone. Where the model's host dies for good or refuses a state,
    `notify` gets a sentence and the roofline planner goes on alone. A model that cannot be loaded
    is a UsageError of `prepare`.
    """

    def __init__(
        self,
        llama: LlamaPlanner,
        roofline: RooflinePlanner,
        weight: float,
        notify: Callable[[str], None],
    ) -> None:
        self._llama = llama
        self._roofline = roofline
        self._weight = weight
        self._notify = notify
        self._alone = False

    @property
    def name(self) -> str:
        if self._alone:
            return self._roofline.name
        if self._weight == 1:
            return self._llama.name
        return f"{self._llama.name} {self._weight:g} + {self._roofline.name} {1 - self._weight:g}"

    async def prepare(self, state: State) -> None:
        if self._alone:
            return
        try:
            await self._llama.prepare(state)
        except WorkerDied as death:
            self._give_up(death)

    async def propose(self, state: State, legal: Sequence[Action]) -> tuple[ScoredAction, ...]:
        evidence, opinion = await asyncio.gather(
            self._roofline.propose(state, legal), self._opinion(state, legal)
        )
        return mix(legal, opinion, evidence, self._weight) if opinion else evidence

    async def _opinion(self, state: State, legal: Sequence[Action]) -> tuple[ScoredAction, ...]:
        """The model's ranking; empty where it cannot give one any more."""
        if self._alone:
            return ()
        try:
            return await self._llama.propose(state, legal)
        except (WorkerDied, UsageError) as failure:
            self._give_up(failure)
            return ()

    async def close(self) -> None:
        await self._llama.close()

    def _give_up(self, failure: MtmcError) -> None:
        self._alone = True
        self._notify(f"{failure} The roofline planner goes on alone.")


def mix(
    legal: Sequence[Action],
    opinion: Sequence[ScoredAction],
    evidence: Sequence[ScoredAction],
    weight: float,
) -> tuple[ScoredAction, ...]:
    """The weighted geometric mean of two rankings of `legal`, normalised to sum to 1."""
    ours = _probabilities(legal, opinion)
    theirs = _probabilities(legal, evidence)
    scores = [
        weight * math.log(max(p, _SMALLEST)) + (1 - weight) * math.log(max(q, _SMALLEST))
        for p, q in zip(ours, theirs, strict=True)
    ]
    return ranked(legal, softmax(scores), {"llama": ours, "roofline": theirs})


def _probabilities(legal: Sequence[Action], ranking: Sequence[ScoredAction]) -> list[float]:
    found = {option.action.phrase: option.probability for option in ranking}
    return [found[action.phrase] for action in legal]
