"""Exercises proof and timing on a GPU: PYTHONPATH=. python tests/gpu/exercise_proof.py [WORD …]

Judges every case of gpu_cases.py, each on its own, prints a table of cases, what a judgement
costs and how noisy this card is, and ends with "N passed, N failed". WORD: only cases whose
number or name contains it. Needs no test runner. Exits with 1 where a verdict is not right.
"""

import asyncio
import statistics
import sys
import tempfile
import time
import traceback
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parent))

from gpu_cases import (
    CASES,
    FUSED,
    PROVEN,
    SOFTMAX,
    SOFTMAX_KERNEL,
    Case,
    fused,
    honest_controls,
)

from mtmc_engine.capture.client import task_of
from mtmc_engine.proof.confirm import confirm
from mtmc_engine.proof.gates.timing import measured
from mtmc_engine.proof.prove import Bounds, Subject, prove
from mtmc_engine.proof.timing.gpu_timer import GpuTimer
from mtmc_engine.proof.timing.pool import pool_of
from mtmc_engine.schedule.legal import apply_action, legal_actions
from mtmc_engine.schedule.regions import root
from mtmc_engine.schedule.render import render
from mtmc_engine.system.devices import card
from mtmc_engine.system.jobs import Workshop

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ("softmax", "rms_norm")
GAINS = ("lower", "fuse", "fuse_epilogue", "one_pass")
CASE_S = 150
# Cases of gigabytes come last, and not at all once the rest has taken so long.
BEFORE_HUGE_S = 330
AGAINST_ITSELF = 20


class Bench:
    """Opens files and proves candidates on the card that is here."""

    def __init__(self, workshop, folder):
        self.workshop, self.folder = workshop, Path(folder)
        self.card = card("auto")
        self.rows = []
        self.tasks = {}

    async def task(self, reference):
        """The task of a reference's text, opened once."""
        if reference not in self.tasks:
            path = self.folder / f"file{len(self.tasks)}" / "operator_file.py"
            path.parent.mkdir()
            path.write_text(reference)
            self.tasks[reference] = await self.open(path)
        return self.tasks[reference]

    async def open(self, path):
        job = {"file": str(path), "seed": 0, "target_card": msgspec.to_builtins(self.card)}
        return task_of(await self.workshop.device.run("mtmc_engine.capture.worker:open_task", job))

    async def prove(self, task, source, **options):
        given = {"against_compiled": False, "beside": str(Path(task.file).parent)} | options
        folder = str(Path(task.file).parent / "scratch")
        subject = Subject(task=task, source=source, name="gpu", folder=folder, **given)
        began = time.monotonic()
        verdict = await prove(subject, self.workshop, lambda progress: None)
        return subject, verdict, time.monotonic() - began

    def note(self, what, right, verdict, seconds, problem=""):
        """what: number and name of a case."""
        number, name = what
        if not problem and verdict not in right:
            problem = "WRONG VERDICT"
        self.rows.append((number, name, "/".join(right), verdict, seconds, problem))
        word = problem or "ok"
        print(f"{number:>7} {name:32.32} {verdict:15} {seconds:6.1f} s  {word}", flush=True)


def told(verdict):
    """What a reader wants to see of a verdict."""
    print(f"        {verdict.reason}")
    print("        " + ", ".join(f"{g.gate} {g.seconds:.2f}" for g in verdict.gates))
    for warning in verdict.warnings:
        print(f"        warning: {warning}")
    if not verdict.gates[-1].passed:
        log = verdict.gates[-1].log[-1200:].strip()
        print("        " + log.replace("\n", "\n        "))
    if verdict.measurement is not None:
        found = verdict.measurement
        times = {one.name: round(one.time_us, 2) for one in found.contestants}
        ratios = {name: round(ratio.value, 3) for name, ratio in found.against.items()}
        print(f"        {times} µs, {ratios}, noise {found.noise:.3%}, {found.method}")
        print(f"        {verdict.gates[-1].evidence}")


def complaint(case, verdict):
    """What is missing beside the class of the verdict."""
    if case.warning and not any(case.warning in warning for warning in verdict.warnings):
        return f"NO WARNING of {case.warning}"
    if case.unmeasured and verdict.measurement is not None:
        return "A NUMBER beside a failure"
    return ""


async def judge(bench, case: Case):
    began = time.monotonic()
    try:
        async with asyncio.timeout(CASE_S):
            task = await bench.task(case.reference)
            options = {"bounds": Bounds(**case.bounds), **case.options}
            _, verdict, seconds = await bench.prove(task, case.candidate, **options)
        problem = complaint(case, verdict)
        bench.note((case.number, case.name), case.right, str(verdict.verdict), seconds, problem)
        told(verdict)
    except Exception as error:
        seconds = time.monotonic() - began
        bench.note((case.number, case.name), case.right, type(error).__name__, seconds, "RAISED")
        traceback.print_exc()


async def attempt(bench, name, work):
    """One further examination, in its own try."""
    began = time.monotonic()
    try:
        await work
        bench.note(("", name), ("done",), "done", time.monotonic() - began)
    except Exception as error:
        bench.note(("", name), ("done",), type(error).__name__, time.monotonic() - began, "RAISED")
        traceback.print_exc()


async def cost(bench):
    """What a judgement costs once a session is warm, gate by gate."""
    task = await bench.task(SOFTMAX)
    previous = SOFTMAX_KERNEL.format(warps=16)
    for warps in (4, 8, 16, 32):
        source = SOFTMAX_KERNEL.format(warps=warps)
        _, verdict, seconds = await bench.prove(task, source, baselines={"previous": previous})
        gates = {str(gate.gate): round(gate.seconds, 2) for gate in verdict.gates}
        gpu = verdict.gates[-1].evidence.get("gpu_s", float("nan"))
        print(f"    {seconds:5.2f} s, of it under the lock {gpu:.2f} s: {gates}")
        previous = source
    _, verdict, seconds = await bench.prove(task, previous, timed=False)
    gates = {str(gate.gate): round(gate.seconds, 2) for gate in verdict.gates}
    print(f"    the same candidate once more, all kernels compiled: {seconds:.2f} s: {gates}")


async def against_itself(bench):
    """A kernel against a copy of itself: how often it seems faster, and how far apart."""
    task = await bench.task(FUSED)
    source = fused()
    noises, ratios, classes, seconds = [], [], [], []
    for number in range(AGAINST_ITSELF):
        subject = Subject(
            task=task,
            source=source,
            name="copy",
            folder=str(Path(task.file).parent / "scratch"),
            baselines={"previous": source},
            against_compiled=False,
        )
        timer = GpuTimer(bench.workshop, subject.bounds)
        began = time.monotonic()
        found = await measured(subject, timer, lambda *_: None, number)
        seconds.append(time.monotonic() - began)
        if isinstance(found, str):
            raise RuntimeError(found)
        noises.append(found.measurement.noise)
        ratios.append(found.measurement.against["previous"].value)
        classes.append(str(found.verdict))
    counts = {name: classes.count(name) for name in sorted(set(classes))}
    print(f"    {counts}, a contest takes {statistics.median(seconds):.2f} s")
    print(
        f"    ratio {min(ratios):.4f} to {max(ratios):.4f}, median {statistics.median(ratios):.4f}"
    )
    print(f"    noise median {statistics.median(noises):.3%}, largest {max(noises):.3%}")
    if counts.get("FASTER", 0) > 1 or set(counts) - {*PROVEN}:
        raise RuntimeError("a copy seems faster")


async def sample(bench, name):
    """A sample, lowered and fused as far as the first legal steps go, with torch.compile."""
    task = await bench.open(ROOT / "samples" / f"{name}.py")
    schedule = root(task.graph)
    previous = render(task, schedule)
    for _ in range(4):
        steps = [a for a in legal_actions(task, schedule, bench.card) if a.kind in GAINS]
        if not steps:
            break
        schedule = apply_action(task, schedule, steps[0])
    folder = str(bench.folder / f"sample-{name}")
    subject = Subject(
        task=task,
        source=render(task, schedule),
        name=name,
        folder=folder,
        baselines={"previous": previous},
        schedule=schedule,
    )
    verdict = await prove(subject, bench.workshop, lambda progress: None)
    told(verdict)
    if not verdict.proven:
        raise RuntimeError(verdict.reason)
    again = await confirm(subject, bench.workshop)
    ratios = {key: round(ratio.value, 3) for key, ratio in again.against.items()}
    print(f"    confirmed: {again.time_us:.1f} µs, {ratios}, noise {again.noise:.3%}")


def chosen(cases, words):
    return [c for c in cases if not words or any(w in (c.number, *c.name.split()) for w in words)]


async def main(words):
    workshop = Workshop()
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(workshop, folder)
            print(bench.card)
            await workshop.device.start()
            print(f"warm parent in {time.monotonic() - began:.1f} s", flush=True)
            huge = [case for case in CASES if case.number == "14"]
            for case in chosen([c for c in CASES if c not in huge] + honest_controls(), words):
                await judge(bench, case)
            if not words:
                await attempt(bench, "cost of a judgement", cost(bench))
                await attempt(bench, "a copy against itself", against_itself(bench))
                for name in SAMPLES:
                    await attempt(bench, f"sample {name}", sample(bench, name))
            await pool_of(workshop).close()
            for case in chosen(huge, words):
                if words or time.monotonic() - began < BEFORE_HUGE_S:
                    await judge(bench, case)
                else:
                    print(f"left out for time: {case.number} {case.name}")
            return report(bench.rows, time.monotonic() - began)
    finally:
        await pool_of(workshop).close()
        await workshop.close()


def report(rows, seconds):
    print("\ncase | what | right | verdict | seconds | ")
    for number, name, right, verdict, took, problem in rows:
        print(f"{number} | {name} | {right} | {verdict} | {took:.1f} | {problem or 'ok'}")
    failed = sum(bool(row[-1]) for row in rows)
    print(f"{seconds:.0f} s in all")
    print(f"{len(rows) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main(sys.argv[1:])) else 0)
