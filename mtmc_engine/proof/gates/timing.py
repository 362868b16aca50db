"""Gate timing: measured on a GPU, estimated without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mtmc_engine.core.verdict import PROVEN, Class, Gate
from mtmc_engine.proof.gates.proof import Outcome, Proof
from mtmc_engine.proof.subject import Subject
from mtmc_engine.proof.timing.estimate import estimated
from mtmc_engine.proof.timing.gpu_timer import GpuTimer, folder_for, lock_file, stand_limits
from mtmc_engine.proof.timing.measure import Found, judge_times
from mtmc_engine.proof.timing.pool import pool_of
from mtmc_engine.proof.timing.replay import UNRECORDED
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


async def time_it(proof: Proof, timer: Timer | None = None) -> Outcome:
    """Measures or estimates; the class is kept in `proof.speed`.

    timer: None for the GPU of this machine, or an estimate without one.
    """
    subject = proof.subject
    values = next((r for r in proof.results if r.gate is Gate.VALUES), None)
    proven = values.sentence if values else "values proven"
    if timer is None and not subject.task.device.present:
        proof.measurement = estimated(subject, proof.ran.launched)
        known = proof.measurement is not None
        how = "its time is estimated" if known else "no GPU here to time it"
        said = {"timing": f"{'estimated' if known else 'none'}, no GPU here"}
        return Outcome(None, f"{proven}; {how}", said)
    if not subject.timed:
        return Outcome(None, f"{proven}; not timed", {"timing": "not asked for"})
    if timer is None:
        timer = GpuTimer(proof.workshop, subject.bounds)

    def tell(done: int, total: int, doing: str) -> None:
        proof.tell(Gate.TIMING, done, total, doing)

    found = await measured(subject, timer, tell, subject.seed, weights=proof.code.weights)
    if isinstance(found, str) and found.startswith(UNRECORDED):
        return Outcome(None, f"{proven}; {found}", {"timing": found})
    if isinstance(found, str):
        verdict = Class.TIMEOUT if _is_timeout(found) else Class.RUNTIME
        return Outcome(verdict, f"while being timed: {found}")
    for name, why in found.evidence["missing"].items():
        proof.warn(f"{name} was not timed: {why}")
    if found.verdict not in PROVEN:  # no number stands beside a failure
        return Outcome(found.verdict, found.sentence, found.evidence)
    proof.measurement, proof.speed = found.measurement, found.verdict
    if found.measurement.device.get("throttled"):
        proof.warn("the GPU lowered its clocks while timing")
    if found.measurement.kind == "replayed":
        proof.warn("its times are replayed from a recording: nothing was measured here")
    if found.measurement.device.get("other_processes"):
        proof.warn("other processes are on the GPU")
    return Outcome(None, found.sentence, found.evidence)


def start_early(proof: Proof) -> Contest | None:
    """Starts the contestants' processes while values are still compared; None without a GPU."""
    subject = proof.subject
    if not (subject.task.device.present and subject.timed):
        return None
    contest = _contest(subject, subject.seed, proof.compiled.weights, 1.0, fresh=False)
    pool_of(proof.workshop).start_early(contest, stand_limits(subject.bounds))
    return contest


async def give_up(proof: Proof, contest: Contest) -> None:
    """Ends the process of a candidate that will not be timed."""
    candidate = next(one for one in contest.entrants if one.name == CANDIDATE)
    await pool_of(proof.workshop).discard(candidate, contest)


def _is_timeout(why: str) -> bool:
    return why.startswith(("TIMEOUT", "TooSlow"))


async def measured(
    subject: Subject,
    timer: Timer,
    tell: Callable[[int, int, str], None],
    seed: int,
    *,
    weights: str = "",
    longer: float = 1.0,
    fresh: bool = False,
) -> Found | str:
    """The candidate against the step before, eager and torch.compile; why not, where it fails.

    weights: as in Compiled; "" lets the worker find out. longer: factor on sampling time.
    fresh: whether all but torch.compile are timed in new processes.
    """
    contest = _contest(subject, seed, weights, longer, fresh)
    timed = await timer.time(contest, tell)
    if timed.failed or not timed.sets:
        return timed.failed or "no samples came back"
    if contest.baseline not in timed.sets[0].device_us:
        return f"the baseline could not be timed: {timed.missing.get(contest.baseline, '')}"
    device = subject.task.device
    floor = floor_us(subject.task, device, subject.schedule)
    in_cache = device.l2_bytes / (device.bandwidth_gbs * 1e3)
    found = judge_times(
        timed, contest.baseline, floor, max(0.0, floor - in_cache), subject.original
    )
    if timed.tokens.get(CANDIDATE, subject.token) != subject.token:
        sentence = "the code that was timed is not the code that was judged"
        return replace(found, verdict=Class.SUSPICIOUS, sentence=sentence)
    return found


def _contest(subject: Subject, seed: int, weights: str, longer: float, fresh: bool) -> Contest:
    sources = {CANDIDATE: subject.source, **subject.baselines}
    entrants = []
    for name, source in sources.items():
        known = weights if name == CANDIDATE else ""
        code = _written(subject, source, known)
        entrants.append(Entrant(name, "source", code, str(subject.cache_of(source))))
    baseline = "previous" if "previous" in sources else EAGER
    entrants.append(Entrant(EAGER, "eager"))
    if subject.against_compiled:
        entrants.append(Entrant(COMPILED, "torch.compile", cache=str(subject.compiler_cache)))
    copied = next(entrant for entrant in entrants if entrant.name == baseline)
    entrants.append(Entrant(COPY, copied.kind, copied.code, copied.cache))
    task = subject.task
    return Contest(
        build=subject.build(subject.device, randomise=weights != "seed"),
        entrants=tuple(entrants),
        baseline=baseline,
        sets=tuple(one.tensors for one in task.inputs),
        l2_bytes=task.device.l2_bytes,
        lock=lock_file(),
        seconds=subject.bounds.sampling_s * longer,
        order_seed=seed,
        folder=folder_for(subject.own_folder),
        hidden=subject.hidden,
        fresh=fresh,
    )


def _written(subject: Subject, source: str, weights: str) -> CandidateCode:
    """The source where it lay when it was judged itself, so that its compiled kernels serve."""
    path = subject.path_of(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return CandidateCode(str(path), path.stem, subject.beside, weights)
