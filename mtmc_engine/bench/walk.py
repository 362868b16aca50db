"""One task's headless walk: a session of its own, without a journal or anybody to ask."""

from __future__ import annotations

import asyncio
import time

import msgspec

from mtmc_engine.bench.answer import Footprint, Outcome, line_of
from mtmc_engine.bench.line import Line
from mtmc_engine.bench.listener import Listener
from mtmc_engine.bench.opened import Opened
from mtmc_engine.bench.setting import Bench
from mtmc_engine.coder.builtin import BuiltinCoder
from mtmc_engine.core.errors import MtmcError, ReferenceFailed
from mtmc_engine.core.events import PlanProposed
from mtmc_engine.core.options import RunOptions
from mtmc_engine.plan.tree import ROOT, PlanTree
from mtmc_engine.planner.roofline import RooflinePlanner
from mtmc_engine.proof.confirm import confirm
from mtmc_engine.proof.timing.lock import lock_file
from mtmc_engine.proof.wire import CandidateCode
from mtmc_engine.session.baseline import baseline
from mtmc_engine.session.inbox import Inbox
from mtmc_engine.session.judging import subject_of, with_original
from mtmc_engine.session.loop import walk
from mtmc_engine.session.run import Run
from mtmc_engine.system.jobs import Ending, Workshop

FOOTPRINT = "mtmc_engine.bench.footprint:measure"


async def walked(bench: Bench, opened: Opened, workshop: Workshop) -> Line:
    """Walks a task that was opened: its line.

    A walk that takes too long ends with the best program so far. Raises MtmcError where the
    operator fails on its own inputs, or nothing can be proven at all.
    """
    trees: list[PlanTree] = []

    def planned(event: PlanProposed) -> None:
        program = trees[0][event.node].program
        opened.ahead.expect(program, event.options, skip=1)

    listener = Listener(planned)
    listener.phases.update(opened.phases)
    limit_s = bench.options.most_seconds(bench.device.present)
    beginning = time.monotonic()
    trees.append(await _baseline(bench, opened, workshop, listener, limit_s))
    listener.phases["baseline"] = time.monotonic() - beginning
    run = _run(bench, opened, workshop, listener, trees[0])
    in_time = await _within(limit_s, run)
    began = time.monotonic()
    refused = await _confirmed(run)
    listener.phases["confirm"] = time.monotonic() - began
    warnings = list(listener.warnings)
    if not in_time:
        warnings.append(f"The walk was ended after {limit_s:g} s.")
    footprint = await _footprint(bench, run)
    seconds = opened.seconds + time.monotonic() - beginning
    phases = dict(listener.phases)
    outcome = Outcome(run.tree, footprint, phases, seconds, (*warnings, *refused))
    return line_of(bench, opened, outcome)


async def _baseline(
    bench: Bench, opened: Opened, workshop: Workshop, listener: Listener, limit_s: float
) -> PlanTree:
    """The original, timed; once more where the machine was too busy to believe the first time."""

    async def timed() -> PlanTree:
        return await baseline(
            opened.task,
            listener,
            _nobody(listener),
            workshop,
            scratch=opened.folder,
            seed=bench.options.seed,
            limits=bench.config.limits,
        )

    try:
        async with asyncio.timeout(limit_s):
            tree = await timed()
            measurement = tree.root.measurement
            if bench.device.present and measurement and measurement.kind == "estimated":
                tree = await timed()
            return tree
    except TimeoutError:
        raise ReferenceFailed(f"The original was not timed within {limit_s:g} s.") from None


async def _within(seconds: float, run: Run) -> bool:
    """Take steps until the session ends by itself; False where the time was over before."""
    try:
        async with asyncio.timeout(seconds):
            await walk(run)
    except TimeoutError:
        return False
    return True


async def _confirmed(run: Run) -> list[str]:
    """Measure the winner anew, and the next one where it does not stand; why they did not."""
    seen: set[str] = set()
    refused = []
    while (best := run.tree.best()).id not in {ROOT, *seen}:
        seen.add(best.id)
        if best.measurement is None or best.measurement.kind != "measured":
            break
        try:
            measured = await confirm(subject_of(run, best.id), run.workshop)
        except MtmcError as error:
            run.tree.set_state(best.id, "rejected")
            refused.append(f"{best.id}: {error}")
            continue
        run.tree.measure(best.id, with_original(measured))
    return refused


async def _footprint(bench: Bench, run: Run) -> Footprint | None:
    """Of the best program; None without a GPU and where it cannot be had."""
    if not run.task.device.present:
        return None
    best = run.tree.best()
    subject = subject_of(run, best.id)
    path = subject.path_of(subject.source)
    if not path.exists():
        return None
    arguments = {
        "build": msgspec.to_builtins(subject.build(subject.device)),
        "code": msgspec.to_builtins(CandidateCode(str(path), path.stem, subject.beside)),
        "lock": lock_file(),
    }
    limits = bench.config.limits
    result = await run.workshop.device.run(
        FOOTPRINT,
        arguments,
        limits.of(limits.values_s),
        cache=subject.compile_cache,
        confinement=subject.confined(),
    )
    return msgspec.convert(result.value, Footprint) if result.ending is Ending.DONE else None


def _nobody(listener: Listener) -> Inbox:
    """Of a client that will never say anything."""
    inbox = Inbox(listener.warn)
    inbox.receive(None)
    return inbox


def _run(
    bench: Bench, opened: Opened, workshop: Workshop, listener: Listener, tree: PlanTree
) -> Run:
    options = bench.options
    file = str(opened.bench_task.file)
    return Run(
        options=RunOptions(file, yes=True, steps=options.steps, seed=options.seed),
        scratch=opened.folder,
        config=bench.config,
        outlet=listener,
        inbox=_nobody(listener),
        workshop=workshop,
        planner=RooflinePlanner(),
        coder=BuiltinCoder(),
        exporter=bench.exporter,
        task=opened.task,
        tree=tree,
        current=ROOT,
        best=ROOT,
        follows_policy=True,
    )
