"""What the engine makes of a capture job's ending."""

from __future__ import annotations

import signal

import msgspec

from mtmc_engine.core.errors import MtmcError, ReferenceFailed, WorkerDied
from mtmc_engine.core.task import Task
from mtmc_engine.system.job_result import signal_name
from mtmc_engine.system.jobs import Ending, JobResult


def task_of(result: JobResult) -> Task:
    """The task that a capture job opened.

    Raises UsageError or ReferenceFailed where the user has to act, WorkerDied where the job's
    process ended without an answer for a reason of our own.
    """
    if result.ending in (Ending.DONE, Ending.RAISED):
        return msgspec.convert(result.unwrap(), Task)
    raise _ended(result)


def _ended(result: JobResult) -> MtmcError:
    if result.ending is Ending.TIMEOUT:
        return ReferenceFailed(
            f"Opening the file took longer than {result.seconds:.0f} s and was ended; "
            "look for a loop that does not finish, or make the inputs smaller."
        )
    if result.ending is Ending.MEMORY:
        return ReferenceFailed(
            "Opening the file needed more memory than is allowed; make the inputs smaller."
        )
    if result.ending is Ending.SIGNAL and result.signal == signal.SIGKILL:
        return WorkerDied(
            "The worker that opened the file was killed (SIGKILL), as happens where memory is "
            "short; run the same command again, with more free memory or smaller inputs."
        )
    if result.ending is Ending.SIGNAL:
        return ReferenceFailed(
            f"The file's code ended its process with {signal_name(result.signal)}; "
            "run it on its own to see why."
        )
    return ReferenceFailed(
        "The file's code ended its process without an answer; look for a call of os._exit."
    )
