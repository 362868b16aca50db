"""A roofline estimate in place of a measurement, where there is no GPU."""

from __future__ import annotations

import math

from mtmc_engine.core.measurement import Measurement, Ratio
from mtmc_engine.proof.subject import Subject
from mtmc_engine.schedule.cost import cost_of, estimate_us, floor_us, is_known


def estimated(subject: Subject) -> Measurement | None:
    """The estimated time of a program that has a schedule; None for foreign code.

    None, too, for a program that the user wrote in Triton, of which a roofline knows nothing.

    against: estimated ratios to the baselines whose schedules are known. Their ends equal their
    value, since an estimate has no interval.
    """
    if subject.schedule is None or not is_known(subject.schedule):
        return None
    task = subject.task
    device = task.device
    costs = cost_of(task, subject.schedule, device)
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
        floor_us=floor_us(task, device),
        method=f"roofline estimate for {device.name}",
        groups=costs,
    )
