"""A roofline estimate in place of a measurement, where there is no GPU."""

from __future__ import annotations

import math
from collections.abc import Collection

from msgspec.structs import replace

from mtmc_engine.core.measurement import Measurement, Ratio
from mtmc_engine.core.program import ByHand, Form, Library, Schedule
from mtmc_engine.proof.gates.parse import Outline, outline
from mtmc_engine.proof.subject import Subject
from mtmc_engine.schedule.cost import cost_of, estimate_us, floor_us, is_known


def estimated(subject: Subject, launched: Collection[str]) -> Measurement | None:
    """The estimated time of a program that has a schedule; None for foreign code.

    launched: the kernels that ran. A group by hand none of whose kernels did is as slow as the
    library, whatever it was meant to be.

    None, too, for a program that the user wrote in Triton, of which a roofline knows nothing.

    against: estimated ratios to the baselines whose schedules are known. Their ends equal their
    value, since an estimate has no interval.
    """
    if subject.schedule is None or not is_known(subject.schedule):
        return None
    task = subject.task
    device = task.device
    costs = cost_of(task, _as_it_ran(subject.schedule, launched), device)
    time_us = estimate_us(costs, device)
    against = {}
    for name, schedule in subject.baseline_schedules.items():
        other = estimate_us(cost_of(task, schedule, device), device)
        if time_us and math.isfinite(other / time_us):
            against[name] = Ratio(other / time_us, other / time_us, other / time_us)
    return Measurement(
        kind="estimated",
        time_us=time_us,
        against=against,
        floor_us=floor_us(task, device, subject.schedule),
        method=f"roofline estimate for {device.name}",
        groups=costs,
    )


def _as_it_ran(schedule: Schedule, launched: Collection[str]) -> Schedule:
    def is_kernel(form: Form) -> bool:
        if not isinstance(form, ByHand):
            return True
        found = outline(form.source)
        return isinstance(found, Outline) and not set(launched).isdisjoint(found.kernels)

    groups = (g if is_kernel(g.form) else replace(g, form=Library()) for g in schedule.groups)
    return replace(schedule, groups=tuple(groups))
