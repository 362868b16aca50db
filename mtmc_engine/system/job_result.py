"""Bounds of a job, how it can end, and what comes of it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mtmc_engine.core import errors
from mtmc_engine.core.errors import MtmcError, WorkerDied
from mtmc_engine.system.job_wire import Line, Report


@dataclass(frozen=True)
class Limits:
    """Bounds of one job.

    wall_s: wall-clock seconds. memory_mb: resident MiB of all its processes together.
    output_kb: KiB of its printed output that are kept, from the end. processes: how many it may
    have at once. disk_mb: MiB that its files may take together, and the size of one file; the
    rest of the disk stays free too. Looked at twenty times a second, the disk four times.
    """

    wall_s: float = 120
    memory_mb: int = 8192
    output_kb: int = 256
    processes: int = 256
    disk_mb: int = 32768


DEFAULT_LIMITS = Limits()


class Ending(StrEnum):
    """How a job ended. EXITED: it left without an answer, as os._exit does."""

    DONE = "done"
    RAISED = "raised"
    TIMEOUT = "timeout"
    SIGNAL = "signal"
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    EXITED = "exited"


@dataclass(frozen=True)
class JobResult:
    """What became of a job.

    value: the JSON value that the function returned; None unless DONE.
    error: "Type: message" of an exception; for other bad endings one sentence.
    signal: the number of the signal that ended it, or 0. seconds: wall-clock time.
    output: tail of what it printed. protections: what held it, as `confine` names them.
    failure: an MtmcError that the function raised, as `unwrap` builds it again.
    """

    ending: Ending
    value: Any = None
    error: str = ""
    traceback: str = ""
    signal: int = 0
    seconds: float = 0.0
    output: str = ""
    protections: frozenset[str] = frozenset()
    failure: dict[str, Any] | None = None

    def unwrap(self) -> Any:
        """The value. Raises the job's own MtmcError as it was, or WorkerDied for other endings."""
        if self.ending is Ending.DONE:
            return self.value
        if self.failure:
            raise _rebuilt(self.failure)
        raise WorkerDied(self.error)


def _rebuilt(failure: dict[str, Any]) -> MtmcError:
    fields = dict(failure)
    kind = getattr(errors, fields.pop("type"), MtmcError)
    error: MtmcError = kind(fields.pop("sentence"))
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def judged(function: str, limits: Limits, report: Report, answer: Line | None) -> JobResult:
    """The ending that supervisor and worker together tell of."""
    number = os.WTERMSIG(report.status) if os.WIFSIGNALED(report.status) else 0

    def ended(ending: Ending, error: str = "") -> JobResult:
        return JobResult(
            ending,
            value=answer.value if answer and ending is Ending.DONE else None,
            error=error,
            traceback=answer.traceback if answer else "",
            signal=number,
            seconds=report.seconds,
            output=report.output,
            protections=report.protections,
            failure=answer.failure if answer else None,
        )

    passed = {
        "timeout": (Ending.TIMEOUT, f"took longer than {limits.wall_s:g} s"),
        "memory": (Ending.MEMORY, f"used more than {limits.memory_mb} MB"),
        "processes": (Ending.PROCESSES, f"had more than {limits.processes} processes"),
        "disk": (Ending.DISK, f"filled the disk with more than {limits.disk_mb} MB"),
    }
    if report.cause in passed:
        ending, what = passed[report.cause]
        return ended(ending, f"{function} {what}")
    if answer is not None:
        return ended(Ending.RAISED if answer.kind == "error" else Ending.DONE, answer.error)
    if number:
        return ended(Ending.SIGNAL, f"{function} was ended by {signal_name(number)}")
    code = os.waitstatus_to_exitcode(report.status)
    return ended(Ending.EXITED, f"{function} left without an answer, exit code {code}")


def signal_name(number: int) -> str:
    """ "SIGKILL" of 9."""
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
