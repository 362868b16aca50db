"""The winner measured afresh in a new process, before anything is exported."""

from __future__ import annotations

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.verdict import PROVEN
from mtmc_engine.proof.gates.timing import measured
from mtmc_engine.proof.subject import Subject
from mtmc_engine.proof.timing.gpu_timer import GpuTimer
from mtmc_engine.proof.timing.timer import Timer
from mtmc_engine.system.jobs import Workshop

_LONGER = 2.0


async def confirm(subject: Subject, workshop: Workshop, timer: Timer | None = None) -> Measurement:
    """A new measurement in a new process, with other contents and orders, and twice the samples.

    Only this number is exported: the best of several measured once is best partly by luck.
    timer: None for the GPU of this machine.
    Raises UsageError where it cannot be timed, such as without a GPU.
    """
    timer = timer or GpuTimer(workshop, subject.bounds)
    found = await measured(
        subject, timer, lambda *_: None, seed=subject.seed + 1, longer=_LONGER, fresh=True
    )
    if isinstance(found, str):
        raise UsageError(f"The winner could not be measured once more: {found}")
    if found.verdict not in PROVEN:
        raise UsageError(f"The winner does not stand when measured once more: {found.sentence}")
    return found.measurement
