"""stop: the plan ends here."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Schedule
from mtmc_engine.schedule.context import Context

NAME = "stop"

GUIDE = "Nothing to write: the program stays as it is."


def legal(context: Context) -> list[Action]:
    total = sum(cost.time_us for cost in context.costs.values())
    ideal = sum(cost.of_peak * cost.time_us for cost in context.costs.values())
    reached = ideal / total if total else 1.0
    return [Action(NAME, "stop", reason=f"The program reaches {reached:.0%} of its roofline.")]


def apply(context: Context, action: Action) -> Schedule:  # noqa: ARG001
    return context.schedule
