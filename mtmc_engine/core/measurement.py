"""Times of a program: measured in pairs on a GPU, replayed, or estimated from a roofline."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

TimeKind = Literal["measured", "replayed", "estimated"]
"""Measured here; replayed from a recording, samples and all; or the outcome of a model."""


class Ratio(Struct, frozen=True):
    """How many times faster than a baseline: baseline time over candidate time.

    low, high: 95 % interval of the paired ratios' pseudo-median; both equal to `value` where the
               ratio is estimated.
    """

    value: float
    low: float
    high: float


class Contestant(Struct, frozen=True):
    """One program's time: median and the samples that it came from, microseconds."""

    name: str
    time_us: float
    samples_us: tuple[float, ...] = ()


class GroupCost(Struct, frozen=True):
    """Cost of one group of a schedule at the declared shapes.

    share: part of the program's time, 0 to 1.
    of_peak: fraction of the roofline that it reaches, 0 to 1.
    bound: which roof binds: "memory", "compute" or "launch".
    """

    region: str
    time_us: float
    bytes_moved: int
    flops: int
    share: float
    of_peak: float
    bound: str


class Measurement(Struct, frozen=True):
    """The time of a program and how it compares.

    time_us: the candidate's device time per call, microseconds.
    against: ratio by baseline: "previous", "original", "eager", "torch.compile".
    floor_us: compulsory bytes over peak bandwidth.
    method:  how it was timed, in words.
    device:  card, clocks, temperature, throttling, other processes.
    """

    kind: TimeKind
    time_us: float
    against: dict[str, Ratio]
    floor_us: float
    method: str
    contestants: tuple[Contestant, ...] = ()
    groups: tuple[GroupCost, ...] = ()
    call_us: float | None = None
    noise: float | None = None
    device: dict[str, Any] = {}
