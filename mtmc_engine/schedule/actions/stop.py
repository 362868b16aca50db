"""stop: the plan ends here."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import percent

NAME = "stop"


def legal(context: Context) -> list[Action]:
    """Always legal. The reason says where the program stands, not that it should go on."""
    if not context.costs:
        return [Action(NAME, "stop", reason="The plan ends here.")]
    total = sum(cost.time_us for cost in context.costs.values())
    ideal = sum(cost.of_peak * cost.time_us for cost in context.costs.values())
    reached = ideal / total if total else 1.0
    launches = sum(cost.time_us for cost in context.costs.values() if cost.bound == "launch")
    where = f"the program is at {percent(reached)} of its roofline"
    if total and launches > total / 2:
        where = f"launches, not work, bind {percent(launches / total)} of the program's time"
    return [Action(NAME, "stop", reason=f"The plan ends here: {where}.")]


def change(context: Context, action: Action) -> Change:
    """None at all."""
    return Change()
