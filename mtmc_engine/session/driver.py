"""A session from its options to its last event."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from mtmc_engine.capture.source import read_source
from mtmc_engine.coder.llm.setting import CoderSetting
from mtmc_engine.coder.make import make_coder
from mtmc_engine.coder.seam import Coder
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.errors import MtmcError, NobodyToDecide, UsageError
from mtmc_engine.core.events import Notice, SessionStarted, SourceChanged
from mtmc_engine.core.options import RunOptions
from mtmc_engine.core.task import Task
from mtmc_engine.plan.tree import PlanTree
from mtmc_engine.planner.make import make_planner
from mtmc_engine.planner.seam import Planner
from mtmc_engine.proof.timing.replay import SessionTimer
from mtmc_engine.proof.timing.timer import Timer
from mtmc_engine.session.answer import settle
from mtmc_engine.session.baseline import adopt, baseline
from mtmc_engine.session.budget import budget_event, has_limit, meter_of, restore
from mtmc_engine.session.catalogue import journals_folder
from mtmc_engine.session.inbox import Inbox, Interrupted
from mtmc_engine.session.journal import Journal
from mtmc_engine.session.loop import walk
from mtmc_engine.session.opening import open_task, target_card, task_event
from mtmc_engine.session.outlet import Outlet
from mtmc_engine.session.requests import export_folder, note_arrival
from mtmc_engine.session.restore import Restored, find_unfinished, stored_task
from mtmc_engine.session.run import Run, best_events, max_steps, node_event
from mtmc_engine.session.seams import Exporter
from mtmc_engine.session.summary import finished
from mtmc_engine.session.watch import changes
from mtmc_engine.system.chat.meter import Meter
from mtmc_engine.system.config import Config, load_config
from mtmc_engine.system.jobs import Workshop
from mtmc_engine.system.paths import made
from mtmc_engine.system.scratch import scratch_folder


@dataclass(frozen=True)
class Bench:
    """What a session works with. early: sentences to tell once the session has begun.

    timer: None for the GPU of this machine, or estimates without one.
    """

    options: RunOptions
    config: Config
    device: DeviceCard
    planner: Planner
    coder: Coder
    exporter: Exporter
    workshop: Workshop
    scratch: Path
    outlet: Outlet
    inbox: Inbox
    early: list[str]
    meter: Meter
    timer: Timer | None = None


async def drive(options: RunOptions, exporter: Exporter, outlet: Outlet, inbox: Inbox) -> int:
    """Run a session to its end: the exit code.

    Raises UsageError for options or a file that cannot be used, ReferenceFailed where the
    operator fails on its own inputs, Interrupted where the user stops before it is open.
    """
    async with AsyncExitStack() as stack:
        bench = await _prepare(options, exporter, outlet, inbox, stack)
        run = await _resumed(bench) if options.resume else None
        run = run or await _fresh(bench)
        assert outlet.journal is not None
        stack.callback(outlet.journal.close)
        inbox.listen(lambda command: note_arrival(run, command))
        if options.watch:
            watching = asyncio.create_task(_watch(run))
            stack.push_async_callback(_end, watching)
        return await _to_the_end(run, outlet.journal)


async def _prepare(
    given: RunOptions, exporter: Exporter, outlet: Outlet, inbox: Inbox, stack: AsyncExitStack
) -> Bench:
    """Check all options, and start what takes long to start."""
    config = load_config()
    options = replace(
        given,
        planner=given.planner or config.planner,
        coder=given.coder or config.coder,
        target=given.target or config.target,
    )
    read_source(options.file)
    device = await target_card(options.target)
    early: list[str] = []
    timer = SessionTimer.of(Path(options.timings)) if options.timings else None
    if timer is not None:
        early.append("All times are replayed from a recording: nothing is measured here.")
    notify = lambda text: early.append(text) if outlet.journal is None else outlet.notice(text)  # noqa: E731
    meter = meter_of(options, config)
    planner = make_planner(
        options.planner, config.mix, config.normalise, notify, options.seed, meter=meter
    )
    stack.push_async_callback(planner.close)
    coder = make_coder(options.coder, CoderSetting(meter, seed=options.seed))
    stack.push_async_callback(coder.close)
    if options.export is not None:
        exporter.check(export_folder(options.export, options.file))
    scratch = stack.enter_context(scratch_folder())
    workshop = Workshop(config.confine)
    stack.push_async_callback(workshop.close)
    starting = asyncio.create_task(workshop.start())
    stack.push_async_callback(_end, starting)
    return Bench(
        options,
        config,
        device,
        planner,
        coder,
        exporter,
        workshop,
        scratch,
        outlet,
        inbox,
        early,
        meter,
        timer,
    )


async def _fresh(bench: Bench) -> Run:
    """Open the user's file in a new session; one that comes to nothing leaves no journal."""
    file = Path(bench.options.file).absolute()
    name = re.sub(r"[^\w.-]+", "_", file.stem)
    journal = Journal.create(made(journals_folder()), name)
    bench.outlet.journal = journal
    try:
        journal.set_fact("file", str(file))
        journal.set_fact("options", bench.options)
        _say_started(bench, journal, 0)
        bench.outlet.phase("capture", file.name, bench.config.limits.capture_s)
        seed, workshop = bench.options.seed, bench.workshop
        limits, named = bench.config.limits, bench.options.reference
        work = open_task(str(file), bench.device, seed, workshop, limits, reference=named)
        task = await bench.inbox.unless_interrupted(work)
        bench.outlet.emit(task_event(task, replayed=bench.timer is not None))
        tree = await baseline(
            task,
            bench.outlet,
            bench.inbox,
            workshop,
            scratch=bench.scratch,
            seed=seed,
            limits=bench.config.limits,
            timer=bench.timer,
        )
    except (MtmcError, Interrupted):
        bench.outlet.journal = None
        journal.discard()
        raise
    run = _run(bench, task, tree)
    adopt(run, task, tree)
    _say_budget(run)
    return run


async def _resumed(bench: Bench) -> Run | None:
    """The last unfinished session of this file at the place where it was left, if there is one."""
    most_steps = max_steps(bench.options, bench.config)
    digest = read_source(bench.options.file).digest
    entry, remark = find_unfinished(
        made(journals_folder()), bench.options, most_steps, digest, bench.device
    )
    if entry is None:
        bench.early.append(remark)
        return None
    journal = Journal.reopen(Path(entry.path))
    restored = Restored(journal)
    if restored.tree is None or restored.opened is None:
        journal.close()
        bench.early.append(f"Session {entry.session} had not begun: this one starts afresh.")
        return None
    restore(bench.meter, journal.events())
    run = _run(bench, stored_task(journal), restored.tree)
    run.current, run.records = restored.current, restored.records
    run.refused_stops = restored.refused_stops
    run.hints = journal.fact("hints") or []
    run.hints_read = len(run.hints)
    bench.outlet.journal = journal
    journal.set_fact("stopped_by", "")
    _say_started(bench, journal, restored.decided)
    bench.outlet.show(restored.opened)
    bench.outlet.show(*(node_event(run, node) for node in run.tree))
    bench.outlet.show(*restored.compiled.values())
    bench.outlet.show(*best_events(run, refresh=True))
    _say_budget(run)
    if restored.proposal is not None and restored.proposal.node == run.current:
        bench.outlet.show(restored.proposal)
    return run


def _say_budget(run: Run) -> None:
    """Show the meter where there is something to count or a limit."""
    if run.coder.address or has_limit(run.meter):
        run.outlet.show(budget_event(run.meter))


def _run(bench: Bench, task: Task, tree: PlanTree) -> Run:
    return Run(
        options=bench.options,
        scratch=bench.scratch,
        config=bench.config,
        outlet=bench.outlet,
        inbox=bench.inbox,
        workshop=bench.workshop,
        planner=bench.planner,
        coder=bench.coder,
        exporter=bench.exporter,
        task=task,
        tree=tree,
        current=tree.root.id,
        best=tree.root.id,
        follows_policy=bench.options.yes,
        meter=bench.meter,
        timer=bench.timer,
    )


def _say_started(bench: Bench, journal: Journal, resumed: int) -> None:
    started = SessionStarted(
        session=journal.session,
        file=str(Path(bench.options.file).absolute()),
        journal=str(journal.path),
        planner=bench.planner.name,
        coder=bench.coder.name,
        target=bench.device.name,
        max_steps=max_steps(bench.options, bench.config),
        resumed=resumed,
        elapsed_s=journal.elapsed_s(),
        coder_address=bench.coder.address,
    )
    bench.outlet.emit(started, *(Notice("warning", text) for text in bench.early))


async def _to_the_end(run: Run, journal: Journal) -> int:
    stopped_by, exit_code = "error", 0
    try:
        stopped_by = await walk(run)
        if stopped_by != "user" or not run.inbox.closed:
            await settle(run)
    except (NobodyToDecide, UsageError) as error:
        run.outlet.emit(Notice("error", str(error)))
        exit_code = error.exit_code
    except Interrupted:
        stopped_by = "user"
    if stopped_by == "user":
        exit_code = run.inbox.exit_code
    elif stopped_by == "coder":
        exit_code = 1
    last = finished(run, journal.session, stopped_by, exit_code)
    run.outlet.emit(last, facts={"stopped_by": stopped_by})
    return exit_code


async def _watch(run: Run) -> None:
    try:
        async for digest in changes(Path(run.task.file), run.task.digest):
            run.outlet.emit(SourceChanged(run.task.file, digest))
    except (OSError, RuntimeError) as error:
        run.outlet.warn(f"{run.task.file} cannot be watched: {error}.")


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
