"""stop: the plan ends here."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import percent

NAME = "stop"

GUIDE = "Nothing to write: the program stays as it is."


def legal(context: Context) -> list[Action]:
    """Always legal."""
    total = sum(cost.time_us for cost in context.costs.values())
    ideal = sum(cost.of_peak * cost.time_us for cost in context.costs.values())
    reached = ideal / total if total else 1.0
    return [Action(NAME, "stop", reason=f"The program reaches {percent(reached)} of its roofline.")]


def change(context: Context, action: Action) -> Change:
    """None at all."""
    return Change()
