"""The seam of timing: what is asked of a timer, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.core.measurement import TimeKind
from mtmc_engine.proof.wire import Build, CandidateCode

CANDIDATE = "candidate"
EAGER = "eager"
COMPILED = "torch.compile"
# A second copy of the baseline: how far apart the two seem is the session's noise.
COPY = "copy of the baseline"


class Entrant(Struct, frozen=True):
    """A program that is timed. kind "source": `code`; else the reference, eager or compiled.

    cache: folder of its compiled kernels, "" for none that outlives it.
    """

    name: str
    kind: Literal["source", "eager", "torch.compile"]
    code: CandidateCode | None = None
    cache: str = ""


class Contest(Struct, frozen=True):
    """What is timed, and how long it may take.

    baseline: name of the entrant that decides. sets: the call's tensors, by input set.
    seconds: of sampling for each input set, warm-up not counted.
    folder: where outputs of timed calls are put for being compared. hidden: folders that programs
    which are timed must not see. fresh: whether every program
    gets a new process, torch.compile excepted.
    """

    build: Build
    entrants: tuple[Entrant, ...]
    baseline: str
    sets: tuple[tuple[TensorSpec, ...], ...]
    l2_bytes: int
    lock: str
    seconds: float = 4.0
    compile_seconds: float = 120.0
    order_seed: int = 0
    folder: str = ""
    hidden: tuple[str, ...] = ()
    fresh: bool = False


class Sampled(Struct, frozen=True):
    """Samples of one input set.

    device_us: rounds of samples by entrant, microseconds of device time per call.
    call_us:   what a caller waits for one call, by entrant. enqueue_us: until a call returns.
    method:    how device time was taken, in words; the same for all.
    wall_us:   what a call costs by the clock of another process, by entrant: rounds with calls
               less rounds without. hidden_us: how long the device stays busy after the event that
               ends a call. unexplained_us: what of a caller's wait neither events nor the host's
               own work explain; the least of several calls in both. late: entrants whose output
               changes after the device was idle.
    throttled: rounds left out because the card had lowered its clocks.
    """

    device_us: dict[str, list[list[float]]]
    call_us: dict[str, float]
    enqueue_us: dict[str, float]
    method: str
    wall_us: dict[str, float] = {}
    hidden_us: dict[str, float] = {}
    unexplained_us: dict[str, float] = {}
    late: tuple[str, ...] = ()
    throttled: int = 0


class Rechecked(Struct, frozen=True):
    """Outputs of timed calls, compared with the truth afterwards. verdict: "" where all pass.

    calls: how many were compared.
    """

    calls: int = 0
    verdict: str = ""
    sentence: str = ""
    evidence: dict[str, Any] = {}


class Timed(Struct, frozen=True):
    """Answer of a timer.

    missing: why an entrant is not among the samples. failed: the candidate's own failure.
    device: card, clocks, temperature, power, throttling and other processes.
    tokens: hash of the source that each process ran, by entrant. gpu_s: seconds under the lock.
    kind: whether samples were taken now or come from a recording.
    """

    sets: tuple[Sampled, ...]
    missing: dict[str, str] = {}
    failed: str = ""
    device: dict[str, Any] = {}
    tokens: dict[str, str] = {}
    rechecked: Rechecked = Rechecked()
    gpu_s: float = 0.0
    kind: TimeKind = "measured"


class Timer(Protocol):
    """Something that gives samples."""

    async def time(self, contest: Contest, tell: Callable[[int, int, str], None]) -> Timed:
        """Samples of all entrants. tell: done, total and what runs now."""
        ...
