"""The engine as a process: lines in and out, signals, errors, exit codes."""

from __future__ import annotations

import asyncio
import os
import signal

from mtmc_engine.core.errors import MtmcError, NobodyToDecide, ReferenceFailed, WorkerDied
from mtmc_engine.core.events import Failed, Stop
from mtmc_engine.core.options import RunOptions
from mtmc_engine.session import trouble
from mtmc_engine.session.driver import drive
from mtmc_engine.session.inbox import Inbox, Interrupted
from mtmc_engine.session.outlet import Outlet
from mtmc_engine.session.seams import Exporter
from mtmc_engine.session.wire import LineWriter, receive_lines

ENDED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KINDS = {ReferenceFailed: "reference", NobodyToDecide: "nobody", WorkerDied: "worker"}


async def serve(options: RunOptions, exporter: Exporter) -> int:
    """Run a session on standard input and output: the exit code.

    The last event is a SessionFinished or a Failed, whatever happens.
    """
    writer = LineWriter(_claim_stdout(), lambda: _abandon(inbox))
    outlet = Outlet(writer.write)
    inbox = Inbox(outlet.warn)
    loop = asyncio.get_running_loop()
    for number in ENDED_BY:
        loop.add_signal_handler(number, _abandon, inbox, 128 + number)
    receive_lines(0, inbox.receive)
    try:
        return await drive(options, exporter, outlet, inbox)
    except Interrupted:
        text = "Stopped before anything was tried: there is nothing to go on with."
        return _fail(outlet, Failed(text, inbox.exit_code or 130, "stopped"))
    except MtmcError as error:
        kind = KINDS.get(type(error), "usage")
        return _fail(outlet, Failed(str(error), error.exit_code, kind))
    except Exception as error:  # the boundary: a client is always told
        text = trouble.sentence(error, trouble.record(error))
        return _fail(outlet, Failed(text, 1, "internal"))
    finally:
        writer.close()


def _claim_stdout() -> int:
    """Keep standard output for events alone: what a library prints goes to standard error."""
    descriptor = os.dup(1)
    os.dup2(2, 1)
    return descriptor


def _abandon(inbox: Inbox, exit_code: int = 0) -> None:
    """Nobody is there any more: end soon, and keep the session for another time."""
    inbox.exit_code = inbox.exit_code or exit_code
    inbox.put(Stop())
    inbox.receive(None)


def _fail(outlet: Outlet, failed: Failed) -> int:
    outlet.show(failed)
    return failed.exit_code
