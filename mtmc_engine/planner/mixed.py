"""A language model's opinion and the roofline's evidence in one ranking."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mtmc_engine.core.action import Action, ScoredAction
from mtmc_engine.core.errors import WorkerDied
from mtmc_engine.plan.state import State
from mtmc_engine.planner.llama import LlamaPlanner
from mtmc_engine.planner.roofline import RooflinePlanner
from mtmc_engine.planner.seam import ranked, softmax

_SMALLEST = 1e-30  # so that no probability's logarithm is infinite


class MixedPlanner:
    """p ∝ p_llama ** weight · p_roofline ** (1 − weight), both parts shown.

    weight: 0 to 1; 1 is the model alone. Where the model's host dies for good, `notify` gets a
    sentence and the roofline planner goes on alone.
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
        evidence = await self._roofline.propose(state, legal)
        if self._alone:
            return evidence
        try:
            opinion = await self._llama.propose(state, legal)
        except WorkerDied as death:
            self._give_up(death)
            return evidence
        return mix(legal, opinion, evidence, self._weight)

    async def close(self) -> None:
        await self._llama.close()

    def _give_up(self, death: WorkerDied) -> None:
        self._alone = True
        self._notify(f"{death} The roofline planner goes on alone.")


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
