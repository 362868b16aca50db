"""The planner that needs no model: evidence of the cost model becomes probabilities.

The score of an action is the logarithm of the speed-up it promises; probabilities are a softmax
of the scores.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence

from mtmc_engine.core.action import ENABLING, Action, ScoredAction
from mtmc_engine.core.program import Schedule
from mtmc_engine.plan.state import State
from mtmc_engine.planner.seam import ranked, softmax
from mtmc_engine.schedule.cost import cost_of, estimate_us, floor_us, is_known
from mtmc_engine.schedule.legal import apply_action, legal_actions

# In log speed-up: an action that promises 5 % more is e times as probable …
TEMPERATURE = 0.05
# … and less than that where all gains are small: a third of the best one, but at least 0.1 %.
RELATIVE_TEMPERATURE, LEAST_TEMPERATURE = 1 / 3, 0.001
# Where all regions together promise less than this speed-up, stopping is right. Where they
# promise more, in many small steps, stop scores half of the best of these.
STOP_GAIN = 1.015
# What an enabling step is credited with of the best step that it makes possible.
LOOKAHEAD_CREDIT = 0.8
# Tuning steps change what the estimate cannot see: the part of a group's distance from its roof
# that one such step closes on average. Only where times are measured, since nothing else shows it.
TUNING_REACH = {
    "retile": 0.15,
    "pipeline": 0.1,
    "vectorize": 0.1,
    "reorder": 0.05,
    "persist": 0.05,
    "autotune": 0.15,
}
# The same for rewrites of Triton source, measured or not.
SOURCE_REACH = {
    "primitive": 0.5,
    "reorder": 0.12,
    "retile": 0.15,
    "vectorize": 0.12,
    "pipeline": 0.1,
    "autotune": 0.2,
}
# Score of a step whose kernel does not fit on the card.
IMPOSSIBLE = -2.0


class RooflinePlanner:
    """Ranks actions by the time that the cost model says they save.

    A network of sixty operators takes half a second, in a thread.
    """

    name = "roofline"

    async def prepare(self, state: State) -> None:
        """Nothing is needed."""

    async def propose(self, state: State, legal: Sequence[Action]) -> tuple[ScoredAction, ...]:
        scores = await asyncio.to_thread(lambda: scores_of(state, legal))
        probabilities = softmax(scores, _temperature(scores))
        return ranked(legal, probabilities, {"roofline": probabilities})

    async def close(self) -> None:
        """Nothing was started."""


def scores_of(state: State, legal: Sequence[Action]) -> list[float]:
    """Score of every legal action: the log speed-up that it promises; for stop, its rival's."""
    promised = {a.phrase: promise(state, a) for a in legal if a.kind != "stop"}
    by_region: dict[str, float] = {}
    for action in legal:
        by_region[action.region] = max(
            by_region.get(action.region, 0.0), promised.get(action.phrase, 0.0)
        )
    stop = math.log(STOP_GAIN)
    if sum(by_region.values()) > stop:
        stop = min(stop, max(by_region.values()) / 2)
    return [promised.get(action.phrase, stop) for action in legal]


def _temperature(scores: Sequence[float]) -> float:
    relative = RELATIVE_TEMPERATURE * max(scores, default=0.0)
    return min(TEMPERATURE, max(LEAST_TEMPERATURE, relative))


def promise(state: State, action: Action) -> float:
    """Logarithm of the speed-up that `action` promises, look-ahead and priors included."""
    if not is_known(state.schedule):
        return _source_prior(state, action)
    after = apply_action(state.task, state.schedule, action)
    before_us = _estimate_us(state, state.schedule)
    gain = _log_ratio(before_us, _estimate_us(state, after))
    if action.kind in ENABLING:
        follow_us = min(_follow_ups_us(state, after, action), default=math.inf)
        if follow_us < before_us:  # a step back to where we are earns nothing
            gain = max(gain, LOOKAHEAD_CREDIT * _log_ratio(before_us, follow_us))
    return gain + tuning_prior(state, action)


def _source_prior(state: State, action: Action) -> float:
    """Log speed-up expected of rewriting Triton source, about which a roofline says nothing.

    The part of the program's distance from its floor that such a step closes on average; where
    no time is known, of half of it.
    """
    reach = SOURCE_REACH.get(action.kind, 0.0)
    floor = floor_us(state.task, state.device)
    distance = 1 - min(1.0, floor / state.time_us) if state.time_us else 0.5
    return -math.log(1 - reach * distance)


def _log_ratio(before_us: float, after_us: float) -> float:
    if math.isinf(after_us):
        return IMPOSSIBLE
    return math.log(before_us / after_us)


def _follow_ups_us(state: State, after: Schedule, action: Action) -> Iterable[float]:
    """Estimated times after one further step on the region that `action` made."""
    touched = {action.region, action.other} - {""}
    for follow in legal_actions(state.task, after, state.device):
        if touched & {follow.region, follow.other}:
            yield _estimate_us(state, apply_action(state.task, after, follow))


def tuning_prior(state: State, action: Action) -> float:
    """Log speed-up expected of a tuning step; 0 for other steps and where times are estimates."""
    reach = TUNING_REACH.get(action.kind, 0.0)
    if state.time_kind == "estimated" or not reach:
        return 0.0
    for cost in state.costs:
        if cost.region == action.region:
            return -math.log(1 - reach * cost.share * (1 - cost.of_peak))
    return 0.0


def _estimate_us(state: State, schedule: Schedule) -> float:
    return estimate_us(cost_of(state.task, schedule, state.device), state.device)
