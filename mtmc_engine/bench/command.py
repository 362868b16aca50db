"""The command `bench`: results go to a file, the table to standard output."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mtmc_engine.bench.line import Line
from mtmc_engine.bench.options import BenchOptions
from mtmc_engine.bench.runner import Finished, run_bench, setting_of
from mtmc_engine.bench.store import Store
from mtmc_engine.bench.table import table, told
from mtmc_engine.bench.tasks import BenchTask, find_tasks
from mtmc_engine.session.seams import Exporter

INTERRUPTED = 130


def bench(options: BenchOptions, exporter: Exporter) -> int:
    """Run a bench: its exit code, 0 also where the budget ended it or tasks failed.

    Raises UsageError for paths, a results file or a target that cannot be used.
    """
    tasks = find_tasks(options.paths)
    path = Path(options.json).expanduser().absolute() if options.json else None
    store = Store(path, options.resume)
    known = {_key(options, task): task for task in tasks}
    before = {_key_of(line) for line in store.lines}
    waiting = tuple(task for key, task in known.items() if key not in before)
    if len(waiting) < len(tasks):
        _talk(f"{len(tasks) - len(waiting)} of {len(tasks)} tasks have a line already")
    count = _Counter(len(waiting))

    async def work() -> Finished:
        return await run_bench(await setting_of(options, exporter), waiting, store, count.tell)

    finished = asyncio.run(work())
    print(table([line for line in store.lines if _key_of(line) in known]))
    sys.stdout.flush()
    _talk(_ending(finished, options))
    return INTERRUPTED if finished.stopped_by == "signal" else 0


class _Counter:
    """Tells each line as it comes."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0

    def tell(self, line: Line) -> None:
        self._done += 1
        _talk(f"{self._done}/{self._total} {told(line)}")


def _key(options: BenchOptions, task: BenchTask) -> tuple[str, ...]:
    return task.name, task.digest, options.protocol, options.precision


def _key_of(line: Line) -> tuple[str, ...]:
    return line.task, line.digest, line.protocol, line.precision


def _ending(finished: Finished, options: BenchOptions) -> str:
    seconds = f"{finished.seconds:.0f} s"
    if not finished.left:
        return f"All tasks have a line, after {seconds}."
    why = "the budget is spent" if finished.stopped_by == "budget" else "it was stopped"
    further = "--resume goes on" if options.json else "--json FILE would let --resume go on"
    count = f"{finished.left} task{'s are' if finished.left > 1 else ' is'} left"
    return f"{count}: {why} after {seconds}; {further}."


def _talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
