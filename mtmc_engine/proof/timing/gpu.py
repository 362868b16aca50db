"""The timing process on a GPU: paired, interleaved, cold caches, new contents for every call.

Method (A. Georges et al., Statistically rigorous Java performance evaluation, 2007, for rounds and
intervals; the L2 flush and one pair of events per call as in triton.testing.do_bench): all
entrants are warmed up until compilation and tuning are over; then rounds of A B A B, in reversed
order every other round. Before each sample the inputs get new contents and the last-level cache
is flushed, both outside the events. All of a round is enqueued, then synchronised once.
Programs under SHORT_US are sampled as replays of a captured graph over many input slots.
"""

from __future__ import annotations

import fcntl
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgspec
import torch

from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.proof.timing.contents import Contents
from mtmc_engine.proof.timing.entrants import Program, TooSlow, build_entrant, within
from mtmc_engine.proof.timing.facts import device_facts
from mtmc_engine.proof.timing.timer import CANDIDATE, COMPILED, Contest, Entrant, Sampled, Timed
from mtmc_engine.proof.work.build import build_reference, open_reference, randomise
from mtmc_engine.proof.work.state import GlobalState

SHORT_US = 20.0
_SAMPLES_PER_ROUND = 5
_LEAST_ROUNDS, _MOST_ROUNDS = 12, 60
_MOST_WARM_UP = 30
_CALLS = 12

Tell = Callable[[int, int, str], None]


@dataclass
class _Team:
    """Built entrants, in order, and why others are missing."""

    programs: dict[str, Program]
    missing: dict[str, str]


def time_contestants(arguments: dict[str, Any], report: Callable[[Any], None]) -> Timed:
    """Job: arguments as in Contest; reports {"done", "total", "doing"}."""
    contest = msgspec.convert(arguments, Contest)

    def tell(done: int, total: int, doing: str) -> None:
        report({"done": done, "total": total, "doing": doing})

    with open(contest.lock, "w", encoding="ascii") as lock:
        tell(0, 1, "waiting for the GPU")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _timed(contest, tell)


def _timed(contest: Contest, tell: Tell) -> Timed:
    reference = open_reference(contest.build)
    model = build_reference(reference, contest.build)
    if contest.build.randomise:
        randomise(model, contest.build.seed)
    switches = GlobalState()
    before = device_facts()
    missing: dict[str, str] = {}
    sampled: list[Sampled] = []
    device = contest.build.device
    for number, specs in enumerate(contest.sets):
        contents = Contents(reference, specs, device, contest.build.seed + 100 * number)
        team = _Team({}, missing)
        for entrant in contest.entrants:
            tell(0, 1, f"warming up {entrant.name}")
            try:
                program = build_entrant(entrant, contest, reference, model)
                switches.restore()
                _warm_up(entrant, program, contents, contest)
                team.programs[entrant.name] = program
            except Exception as error:
                if entrant.name == CANDIDATE:
                    return Timed((), missing, f"{type(error).__name__}: {error}")
                missing[entrant.name] = f"{type(error).__name__}: {str(error)[:300]}"
        sampled.append(_sample(contest, team, contents, specs, tell))
    after = device_facts()
    throttled = bool(before.get("throttled")) or bool(after.get("throttled"))
    facts = {**before, "after": after, "throttled": throttled}
    return Timed(tuple(sampled), missing, device=facts)


def _warm_up(entrant: Entrant, program: Program, contents: Contents, contest: Contest) -> None:
    """Calls until three in a row take about as long as the shortest: tuning is then over."""
    budget = contest.compile_seconds if entrant.kind == COMPILED else 4 * contest.compile_seconds
    with torch.no_grad(), within(budget):
        shortest, steady = float("inf"), 0
        for _ in range(_MOST_WARM_UP):
            contents.refresh()
            torch.cuda.synchronize()
            began = time.perf_counter()
            program(*contents.live)
            torch.cuda.synchronize()
            took = time.perf_counter() - began
            steady = steady + 1 if took < 1.3 * shortest else 0
            shortest = min(shortest, took)
            if steady >= 3:
                return


def _sample(
    contest: Contest,
    team: _Team,
    contents: Contents,
    specs: tuple[TensorSpec, ...],
    tell: Tell,
) -> Sampled:
    """Rounds of samples of all entrants, in one method for all."""
    call_us, enqueue_us = {}, {}
    for name, program in team.programs.items():
        call_us[name], enqueue_us[name] = _call_times(program, contents)
    flush = torch.empty(2 * max(contest.l2_bytes, 1 << 26), dtype=torch.int8, device="cuda")
    quick = {n: _event_us(p, contents, flush) for n, p in team.programs.items()}
    takes: dict[str, Callable[[], list[float]]] = {}
    method = "device time: CUDA events, one pair per call, cold L2, new contents for each call"
    if min(quick.values()) < SHORT_US:
        slots = contents.slots(contest.l2_bytes)
        try:
            graphs = {n: _captured(p, slots) for n, p in team.programs.items()}
            takes = {n: _replay_sampler(g, slots, contents) for n, g in graphs.items()}
            method = (
                f"device time: replays of a CUDA graph of {len(slots)} calls, "
                "new contents for each replay"
            )
        except (RuntimeError, TooSlow) as error:
            torch.cuda.synchronize()
            method += f" (not captured as a graph: {str(error).splitlines()[0][:100]})"
    if not takes:
        takes = {n: _event_sampler(p, contents, flush) for n, p in team.programs.items()}
    rounds = _rounds(contest, takes, tell, "x".join(map(str, specs[0].shape)) if specs else "")
    return Sampled(rounds, call_us, enqueue_us, method)


def _rounds(
    contest: Contest, takes: dict[str, Callable[[], list[float]]], tell: Tell, words: str
) -> dict[str, list[list[float]]]:
    """Interleaved rounds until the budget is spent; the order turns round every time."""
    order = list(takes)
    random.Random(contest.order_seed).shuffle(order)
    found: dict[str, list[list[float]]] = {name: [] for name in takes}
    until = time.monotonic() + contest.seconds
    for number in range(_MOST_ROUNDS):
        if number >= _LEAST_ROUNDS and time.monotonic() > until:
            break
        pending: dict[str, list[float]] = {name: [] for name in takes}
        finish: list[tuple[str, list[float]]] = []
        for _ in range(_SAMPLES_PER_ROUND):
            for name in order if number % 2 == 0 else reversed(order):
                finish.append((name, takes[name]()))
        torch.cuda.synchronize()
        for name, sample in finish:
            pending[name] += [_elapsed_us(item) for item in sample]
        for name, samples in pending.items():
            found[name].append(samples)
        tell(number + 1, _MOST_ROUNDS, f"round {number + 1} {words}")
    return found


def _elapsed_us(sample: Any) -> float:
    start, end, calls = sample
    elapsed_ms: float = start.elapsed_time(end)
    return elapsed_ms * 1e3 / float(calls)


def _event_sampler(
    program: Program, contents: Contents, flush: torch.Tensor
) -> Callable[[], list[Any]]:
    """One call between events, after new contents and a cold cache."""

    def take() -> list[Any]:
        contents.refresh()
        flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        with torch.no_grad():
            program(*contents.live)
        end.record()
        return [(start, end, 1)]

    return take


def _replay_sampler(
    graph: torch.cuda.CUDAGraph, slots: list[list[Any]], contents: Contents
) -> Callable[[], list[Any]]:
    """One replay of a graph that calls the program on each slot."""

    def take() -> list[Any]:
        for slot in slots:
            contents.refresh(slot)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        return [(start, end, len(slots))]

    return take


def _captured(program: Program, slots: list[list[Any]]) -> torch.cuda.CUDAGraph:
    """A graph of one call per slot. Raises RuntimeError where it cannot be captured."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for slot in slots[:3]:
            program(*slot)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        for slot in slots:
            program(*slot)
    graph.replay()
    torch.cuda.synchronize()
    return graph


def _event_us(program: Program, contents: Contents, flush: torch.Tensor) -> float:
    """A first idea of the device time."""
    take = _event_sampler(program, contents, flush)
    samples = [take()[0] for _ in range(5)]
    torch.cuda.synchronize()
    return float(median(_elapsed_us(sample) for sample in samples))


def _call_times(program: Program, contents: Contents) -> tuple[float, float]:
    """What one call costs the caller, and until it returns, microseconds by the host's clock."""
    waited, returned = [], []
    for _ in range(_CALLS):
        contents.refresh()
        torch.cuda.synchronize()
        began = time.perf_counter()
        with torch.no_grad():
            program(*contents.live)
        back = time.perf_counter()
        torch.cuda.synchronize()
        waited.append(time.perf_counter() - began)
        returned.append(back - began)
    return median(waited) * 1e6, median(returned) * 1e6
