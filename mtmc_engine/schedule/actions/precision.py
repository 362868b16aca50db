"""precision: another mode of the tensor cores, where the accuracy policy allows it."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import Group, Templated
from mtmc_engine.schedule.actions.parameters import best_of, with_parameters
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import microseconds
from mtmc_engine.schedule.work import dot_mode

NAME = "precision"


def legal(context: Context) -> list[Action]:
    """Products in full float32: three TF32 passes keep its digits on the tensor cores.

    Where the task allows TF32 itself, products use it already.
    """
    if dot_mode(context.task, "float32") != "fp32" or "tf32" not in context.device.tflops:
        return []
    found: list[Action] = []
    for group in context.groups:
        best = best_of(context, group, NAME)
        if best is not None:
            phrase = f"precision {group.region} {best[0]['dot']}"
            reason = _reason(context, group, best[1].time_us)
            found.append(Action(NAME, phrase, group.region, "", best[0], reason))
    return found


def _reason(context: Context, group: Group, time_us: float) -> str:
    assert isinstance(group.form, Templated)
    now = context.costs[group.region]
    return (
        f"{group.region} multiplies in float32 without tensor cores: three TF32 passes are "
        f"estimated at {microseconds(time_us)} instead of {microseconds(now.time_us)}; the values "
        "gate measures their error."
    )


def change(context: Context, action: Action) -> Change:
    """The same product in another mode."""
    return with_parameters(context, action)
