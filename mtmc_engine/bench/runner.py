"""The bench: tasks are opened ahead, walked a few at a time, and leave a line each.

Two kinds of workers share the machine. Openers capture tasks and compile for them, walkers prove
and time what openers have made ready; where several walk at once, the GPU's lock lets one sample
while another one compiles or computes.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from mtmc_engine.bench.answer import failed_line
from mtmc_engine.bench.line import Line
from mtmc_engine.bench.opened import Opened, opened
from mtmc_engine.bench.options import BenchOptions
from mtmc_engine.bench.setting import Bench
from mtmc_engine.bench.shares import CAPACITY_BYTES, Shares, device_bytes
from mtmc_engine.bench.store import Store
from mtmc_engine.bench.tasks import BenchTask
from mtmc_engine.bench.walk import walked
from mtmc_engine.core.errors import MtmcError
from mtmc_engine.proof.timing.pool import pool_of
from mtmc_engine.session import trouble
from mtmc_engine.session.opening import target_card
from mtmc_engine.session.seams import Exporter
from mtmc_engine.system.config import load_config
from mtmc_engine.system.jobs import Workshop
from mtmc_engine.system.scratch import scratch_folder

T = TypeVar("T")
ENDED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Finished:
    """How a bench ended. left: tasks without a line. stopped_by: "", "budget" or "signal"."""

    left: int
    stopped_by: str
    seconds: float


class _Bench:
    """A bench at work. Workers share two queues; one that is done with both ends."""

    def __init__(self, bench: Bench, store: Store, tell: Callable[[Line], None]) -> None:
        self.bench, self.store, self.tell = bench, store, tell
        self.waiting: asyncio.Queue[BenchTask] = asyncio.Queue()
        self.ready: asyncio.Queue[tuple[Opened, AsyncExitStack] | None] = asyncio.Queue()
        self.shares = Shares(CAPACITY_BYTES)
        measured = bench.device.present
        self.openers = bench.options.openers(measured)
        self.walkers = bench.options.walkers(measured)
        # No more tasks are opened than are soon walked: each holds a folder.
        self.places = asyncio.Semaphore(self.openers + self.walkers)

    async def run(self, tasks: tuple[BenchTask, ...]) -> None:
        for task in tasks:
            self.waiting.put_nowait(task)
        async with self._workshop() as workshop:
            try:
                async with asyncio.TaskGroup() as group:
                    opening = [
                        group.create_task(self._open_all(workshop)) for _ in range(self.openers)
                    ]
                    walking = [group.create_task(self._walk_all()) for _ in range(self.walkers)]
                    await asyncio.gather(*opening)
                    for _ in walking:
                        self.ready.put_nowait(None)
            finally:
                await self._leave_ready()

    async def _leave_ready(self) -> None:
        """Free what was opened and will not be walked."""
        while not self.ready.empty():
            if (item := self.ready.get_nowait()) is not None:
                await item[1].aclose()

    async def _open_all(self, workshop: Workshop) -> None:
        while not self.waiting.empty():
            await self.places.acquire()
            if self.waiting.empty():
                self.places.release()
                return
            await self._open(self.waiting.get_nowait(), workshop)

    async def _open(self, task: BenchTask, workshop: Workshop) -> None:
        stack = AsyncExitStack()
        stack.callback(self.places.release)

        async def work() -> Opened:
            folder = stack.enter_context(scratch_folder())
            found = await opened(self.bench, task, folder, workshop)
            stack.push_async_callback(found.ahead.close)
            return found

        try:
            made = await self._surviving(task, work())
        except BaseException:
            await stack.aclose()
            raise
        if made is None:
            await stack.aclose()
        else:
            self.ready.put_nowait((made, stack))

    async def _walk_all(self) -> None:
        async with self._workshop() as workshop:
            while (item := await self.ready.get()) is not None:
                made, stack = item
                async with stack:
                    await self._walk(made, workshop)

    async def _walk(self, made: Opened, workshop: Workshop) -> None:
        async def work() -> Line:
            return await walked(self.bench, made, workshop)

        wanted = device_bytes(made.task) if made.task.device.present else 0
        async with self.shares.held(wanted):
            line = await self._surviving(made.bench_task, work(), made.seconds)
            await pool_of(workshop).close()
        if line is not None:
            self._add(line)

    async def _surviving(
        self, task: BenchTask, work: Awaitable[T], spent_s: float = 0.0
    ) -> T | None:
        """What `work` returns; None where it fails, which leaves a line with the reason."""
        began = time.monotonic() - spent_s
        try:
            return await work
        except MtmcError as error:
            reason = str(error)
        except Exception as error:  # the boundary: one task never ends the others
            reason = trouble.sentence(error, trouble.record(error))
        self._add(failed_line(self.bench, task, reason, time.monotonic() - began))
        return None

    def _add(self, line: Line) -> None:
        self.store.add(line)
        self.tell(line)

    @asynccontextmanager
    async def _workshop(self) -> AsyncIterator[Workshop]:
        workshop = Workshop(self.bench.config.confine)
        try:
            yield workshop
        finally:
            await pool_of(workshop).close()
            await workshop.close()


async def run_bench(
    bench: Bench, tasks: tuple[BenchTask, ...], store: Store, tell: Callable[[Line], None]
) -> Finished:
    """Walks the tasks, until all have a line, the budget is spent or a signal comes.

    tell: called with each line.
    """
    began = time.monotonic()
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[str] = loop.create_future()
    for number in ENDED_BY:
        loop.add_signal_handler(number, _stop, stop)
    before = len(store.lines)
    working = asyncio.create_task(_Bench(bench, store, tell).run(tasks))
    both: set[asyncio.Future[object]] = {working, stop}  # type: ignore[arg-type]
    await asyncio.wait(both, timeout=bench.options.budget_s, return_when=asyncio.FIRST_COMPLETED)
    stopped_by = ""
    if not working.done():
        stopped_by = stop.result() if stop.done() else "budget"
        working.cancel()
    await asyncio.gather(working, return_exceptions=stopped_by != "")
    left = len(tasks) - (len(store.lines) - before)
    return Finished(left, stopped_by, time.monotonic() - began)


async def setting_of(options: BenchOptions, exporter: Exporter) -> Bench:
    """Raises UsageError for an unknown target or a bad configuration."""
    device = await target_card(options.target)
    slots = asyncio.Semaphore(options.compilers(device.present))
    return Bench(options, load_config(), device, exporter, slots)


def _stop(stop: asyncio.Future[str]) -> None:
    if not stop.done():
        stop.set_result("signal")
