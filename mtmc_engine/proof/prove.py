"""The proof of a candidate: gates in order, each in a disposable child, to one verdict."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.core.verdict import Class, Gate, GateResult, Verdict
from mtmc_engine.proof.gates.compiling import compile_candidate
from mtmc_engine.proof.gates.integrity import check_integrity, find_mutated
from mtmc_engine.proof.gates.parse import SyntaxProblem, outline
from mtmc_engine.proof.gates.proof import Outcome, Proof, sayable
from mtmc_engine.proof.gates.timing import give_up, start_early, time_it
from mtmc_engine.proof.gates.values import launch_and_compare
from mtmc_engine.proof.progress import GateProgress, OnGate
from mtmc_engine.proof.subject import Bounds, Subject
from mtmc_engine.proof.timing.timer import Timer
from mtmc_engine.proof.wire import CandidateCode
from mtmc_engine.system.jobs import Workshop

__all__ = ["Bounds", "Subject", "prove"]

_MOST_LOG = 8000


Pause = Callable[[Gate], Awaitable[None]]


async def prove(
    subject: Subject,
    workshop: Workshop,
    on_gate: OnGate,
    *,
    timer: Timer | None = None,
    pause: Pause | None = None,
) -> Verdict:
    """Judges a candidate.

    on_gate: called when a gate begins, while it runs, and with its result. timer: None for the
    GPU of this machine, or an estimate without one. pause: awaited before the gates parse, launch
    and timing, each of which costs much more than the one before.
    Raises UsageError where the reference cannot be opened at all, WorkerDied where a child of our
    own dies.
    """
    run = _Run(subject, workshop, on_gate, timer, pause)
    try:
        return await run.verdict()
    except ReferenceFailed as error:
        evidence = {"file": subject.task.file, "line": error.line}
        return run.closed(Outcome(Class.REFERENCE_ERROR, str(error), evidence))


class _Run:
    """One proof: opens and closes gates and keeps their results."""

    def __init__(
        self,
        subject: Subject,
        workshop: Workshop,
        on_gate: OnGate,
        timer: Timer | None,
        pause: Pause | None,
    ) -> None:
        self.subject = subject
        self.on_gate = on_gate
        self.timer = timer
        self.pause = pause
        self.gate = Gate.PARSE
        self.began = time.monotonic()
        path = subject.path_of(subject.source)
        code = CandidateCode(str(path), path.stem, subject.beside)
        self.proof = Proof(subject, workshop, on_gate, code)

    async def verdict(self) -> Verdict:
        if self.subject.task.random:
            why = "the reference gives other results for the same inputs, so it cannot be judged"
            return self.closed(Outcome(Class.REFERENCE_ERROR, f"{why}; try mode 'eval'"))
        await self.turn(Gate.PARSE)
        self.open(Gate.PARSE)
        outcome = self._parse()
        if outcome.verdict is not None:
            return self.closed(outcome)
        self.passed(outcome)
        self.open(Gate.IMPORT)
        outcome = await compile_candidate(self.proof, self._through_import)
        if outcome.verdict is not None:
            return self.closed(outcome)
        self.passed(outcome)
        await self.turn(Gate.LAUNCH)
        contest = start_early(self.proof) if self.timer is None else None
        try:
            return await self._run_and_timed()
        finally:
            if contest is not None and self.proof.measurement is None:
                await give_up(self.proof, contest)

    async def _run_and_timed(self) -> Verdict:
        """From the launch gate on."""
        self.open(Gate.LAUNCH)
        outcome = await launch_and_compare(self.proof, self._through_launch)
        if outcome.verdict is None:
            self.passed(outcome)
            self.open(Gate.INTEGRITY)
            outcome = check_integrity(self.proof)
        elif self.proof.judged is not None:
            outcome = self._mutation_first(outcome)
        if outcome.verdict is not None:
            return self.closed(outcome)
        self.passed(outcome)
        return await self._timed()

    def _parse(self) -> Outcome:
        found = outline(self.subject.source)
        if isinstance(found, SyntaxProblem):
            return Outcome(Class.SYNTAX, found.sentence, {"line": found.line})
        self.proof.outline = found
        path = Path(self.proof.code.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.subject.source, encoding="utf-8")
        return Outcome(None, "Python", {"kernels": list(found.kernels)})

    def _through_import(self, outcome: Outcome) -> None:
        if self.gate is Gate.IMPORT:
            self.passed(outcome)
            self.open(Gate.COMPILE)

    def _through_launch(self, outcome: Outcome) -> None:
        if self.gate is Gate.LAUNCH:
            self.passed(outcome)
            self.open(Gate.VALUES)

    def _mutation_first(self, outcome: Outcome) -> Outcome:
        """A candidate that spoils its inputs is told so, also where its values are wrong."""
        mutated = find_mutated(self.proof)
        if mutated is None:
            return outcome
        evidence = {**outcome.evidence, **mutated.evidence, "also": outcome.sentence}
        return Outcome(mutated.verdict, mutated.sentence, evidence, outcome.log)

    async def _timed(self) -> Verdict:
        await self.turn(Gate.TIMING)
        self.open(Gate.TIMING)
        outcome = await time_it(self.proof, self.timer)
        if outcome.verdict is not None and outcome.verdict is not self.proof.speed:
            return self.closed(outcome)
        if self.proof.truths.independent and self.proof.speed is Class.FASTER:
            self.proof.speed = Class.AMBIGUOUS
            why = "its output does not depend on its inputs, so no gain is claimed"
            outcome = replace(outcome, sentence=f"{outcome.sentence}; {why}")
        self.passed(outcome)
        return Verdict(
            self.proof.speed,
            outcome.sentence,
            tuple(self.proof.results),
            tuple(self.proof.warnings),
            self.proof.measurement,
        )

    async def turn(self, gate: Gate) -> None:
        if self.pause is not None:
            await self.pause(gate)

    def open(self, gate: Gate) -> None:
        self.gate = gate
        self.began = time.monotonic()
        self.on_gate(GateProgress(gate))

    def passed(self, outcome: Outcome) -> None:
        self._finish(outcome, passed=True)

    def closed(self, outcome: Outcome) -> Verdict:
        """The verdict of a failed gate."""
        self._finish(outcome, passed=False)
        assert outcome.verdict is not None
        return Verdict(
            outcome.verdict, outcome.sentence, tuple(self.proof.results), tuple(self.proof.warnings)
        )

    def _finish(self, outcome: Outcome, passed: bool) -> None:
        seconds = time.monotonic() - self.began
        result = GateResult(
            self.gate,
            passed,
            seconds,
            outcome.sentence,
            sayable(outcome.evidence),
            outcome.log[-_MOST_LOG:],
        )
        self.proof.results.append(result)  # a verdict is told again and again: without the code
        told = msgspec.structs.replace(result, code=outcome.code)
        self.on_gate(GateProgress(self.gate, told))
