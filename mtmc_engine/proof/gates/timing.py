"""Gate timing: measured on a GPU, estimated without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mtmc_engine.core.verdict import Class, Gate
from mtmc_engine.proof.gates.proof import Outcome, Proof
from mtmc_engine.proof.subject import Subject
from mtmc_engine.proof.timing.estimate import estimated
from mtmc_engine.proof.timing.gpu_timer import GpuTimer, lock_file
from mtmc_engine.proof.timing.measure import Found, judge_times
from mtmc_engine.proof.timing.timer import (
    CANDIDATE,
    COMPILED,
    COPY,
    EAGER,
    Contest,
    Entrant,
    Timer,
)
from mtmc_engine.proof.wire import CandidateCode
from mtmc_engine.schedule.cost import floor_us


async def time_it(proof: Proof) -> Outcome:
    """Measures or estimates; the class is kept in `proof.speed`."""
    subject = proof.subject
    values = next((r for r in proof.results if r.gate is Gate.VALUES), None)
    proven = values.sentence if values else "values proven"
    if not subject.task.device.present:
        proof.measurement = estimated(subject)
        how = "no GPU here to time it" if proof.measurement is None else "its time is estimated"
        return Outcome(None, f"{proven}; {how}")
    if not subject.timed:
        return Outcome(None, f"{proven}; not timed")
    timer = GpuTimer(proof.workshop, subject.bounds)

    def tell(done: int, total: int, doing: str) -> None:
        proof.tell(Gate.TIMING, done, total, doing)

    found = await measured(subject, timer, tell, subject.seed, weights=proof.code.weights)
    if isinstance(found, str):
        verdict = Class.TIMEOUT if found.startswith("TIMEOUT") else Class.RUNTIME
        return Outcome(verdict, f"while being timed: {found}")
    proof.measurement, proof.speed = found.measurement, found.verdict
    for name, why in found.evidence["missing"].items():
        proof.warn(f"{name} was not timed: {why}")
    if found.measurement.device.get("throttled"):
        proof.warn("the GPU lowered its clocks while timing")
    if found.measurement.device.get("other_processes"):
        proof.warn("other processes used the GPU while timing")
    if found.verdict is Class.SUSPICIOUS:
        return Outcome(found.verdict, found.sentence, found.evidence)
    return Outcome(None, found.sentence, found.evidence)


async def measured(
    subject: Subject,
    timer: Timer,
    tell: Callable[[int, int, str], None],
    seed: int,
    *,
    weights: str = "",
    longer: float = 1.0,
) -> Found | str:
    """The candidate against the step before, eager and torch.compile; why not, where it fails.

    weights: as in Compiled; "" lets the worker find out. longer: factor on sampling time.
    """
    contest = _contest(subject, seed, weights, longer)
    timed = await timer.time(contest, tell)
    if timed.failed or not timed.sets:
        return timed.failed or "no samples came back"
    if contest.baseline not in timed.sets[0].device_us:
        return f"the baseline could not be timed: {timed.missing.get(contest.baseline, '')}"
    device = subject.task.device
    floor = floor_us(subject.task, device)
    in_cache = device.l2_bytes / (device.bandwidth_gbs * 1e3)
    return judge_times(timed, contest.baseline, floor, max(0.0, floor - in_cache))


def _contest(subject: Subject, seed: int, weights: str, longer: float) -> Contest:
    folder = subject.own_folder
    sources = {CANDIDATE: subject.source, **subject.baselines}
    entrants = [
        Entrant(name, "source", _written(folder, f"timed_{i}_{subject.digest}", source, subject))
        for i, (name, source) in enumerate(sources.items())
    ]
    if entrants[0].code is not None and weights:
        code = CandidateCode(
            entrants[0].code.path, entrants[0].code.module, subject.beside, weights
        )
        entrants[0] = Entrant(CANDIDATE, "source", code)
    baseline = "previous" if "previous" in sources else EAGER
    entrants += [Entrant(EAGER, "eager"), Entrant(COMPILED, "torch.compile")]
    copied = next(entrant for entrant in entrants if entrant.name == baseline)
    entrants.append(Entrant(COPY, copied.kind, copied.code))
    task = subject.task
    return Contest(
        build=subject.build(subject.device, randomise=weights != "seed"),
        entrants=tuple(entrants),
        baseline=baseline,
        sets=tuple(one.tensors for one in task.inputs),
        l2_bytes=task.device.l2_bytes,
        lock=lock_file(),
        seconds=4.0 * longer,
        order_seed=seed,
    )


def _written(folder: Path, module: str, source: str, subject: Subject) -> CandidateCode:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{module}.py"
    path.write_text(source, encoding="utf-8")
    return CandidateCode(str(path), module, subject.beside, "")
