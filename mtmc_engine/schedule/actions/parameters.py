"""Steps that only change parameters of a templated group."""

from __future__ import annotations

import math

from mtmc_engine.core.action import Action
from mtmc_engine.core.measurement import GroupCost
from mtmc_engine.core.program import Group, Param, Templated
from mtmc_engine.schedule.context import Change, Context

Ranked = tuple[dict[str, Param], GroupCost]


def ranked(context: Context, group: Group, kind: str) -> list[Ranked]:
    """Variants of a group for an action kind with their cost, fastest first.

    Those that do not fit on the card, or that cannot be written, are left out.
    """
    if not isinstance(group.form, Templated):
        return []
    forms = [(params, changed_form(group.form, params)) for params in context.variants(group, kind)]
    found = [
        (params, context.cost(Group(group.region, group.nodes, form)))
        for params, form in forms
        if context.is_writable(group.nodes, form)
    ]
    fitting = [item for item in found if math.isfinite(item[1].time_us)]
    return sorted(fitting, key=lambda item: item[1].time_us)


def best_of(context: Context, group: Group, kind: str) -> Ranked | None:
    """The fastest variant, None where there is none."""
    return next(iter(ranked(context, group, kind)), None)


def changed_form(form: Templated, params: dict[str, Param]) -> Templated:
    """The form with some parameters changed, or another template with these parameters."""
    if "template" in params:
        rest = {name: value for name, value in params.items() if name != "template"}
        return Templated(str(params["template"]), rest)
    return form.with_params(**params)


def with_parameters(context: Context, action: Action) -> Change:
    """The action's parameters set on its region."""
    group = context.group(action.region)
    assert isinstance(group.form, Templated)
    form = changed_form(group.form, action.params)
    return Change((group,), (Group(group.region, group.nodes, form),))
