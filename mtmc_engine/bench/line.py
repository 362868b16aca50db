"""The line that a task leaves in the results."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from mtmc_engine.bench.options import Precision, Protocol
from mtmc_engine.core.measurement import Ratio, TimeKind

# Verdicts of a line beside the classes of a candidate: the answer is the original program, or
# the task could not be walked at all.
ORIGINAL = "ORIGINAL"
FAILED = "FAILED"


class StepLine(Struct, frozen=True):
    """One step. ratio: against the step before; state: of its node; seconds: of its proof."""

    phrase: str
    verdict: str
    state: str
    ratio: float | None = None
    time_us: float | None = None
    reason: str = ""
    seconds: float = 0.0


class Line(Struct, frozen=True):
    """A task and what became of it.

    verdict: class of the answer, ORIGINAL, or FAILED; `reason` is one sentence.
    proven:  values and integrity of the answer hold; under "strict" also on all hidden inputs.
    missing: hidden inputs that the answer was not tried on.
    time_kind: "measured" or "estimated", of every time and ratio here; None where there is none.
    against: how many times faster than "eager" and "torch.compile", with 95 % intervals.
    floor_share: floor over time, 1 at the floor. own_share: of device time, in own kernels.
    peak_bytes, first_call_us, launch_us: as in answer.Footprint; None where not measured.
    gpu_s:   seconds of sampling under the GPU's lock. phases: wall seconds by phase.
    """

    task: str
    family: str
    file: str
    digest: str
    protocol: Protocol
    precision: Precision
    device: str
    verdict: str
    reason: str
    proven: bool
    seconds: float
    time_kind: TimeKind | None = None
    against: dict[str, Ratio] = {}
    time_us: float | None = None
    floor_us: float | None = None
    floor_share: float | None = None
    own_share: float | None = None
    peak_bytes: int | None = None
    first_call_us: float | None = None
    launch_us: float | None = None
    answer: str = ""
    steps: tuple[StepLine, ...] = ()
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    gpu_s: float = 0.0
    phases: dict[str, float] = {}
    version: Literal[1] = 1
