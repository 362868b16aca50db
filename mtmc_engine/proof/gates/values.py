"""Gates launch and values: the candidate runs, and its results are compared with the truth."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.core.verdict import Class, Gate
from mtmc_engine.proof import explain
from mtmc_engine.proof.gates.integrity import find_mutated
from mtmc_engine.proof.gates.proof import Outcome, Proof
from mtmc_engine.proof.gates.truths import truths_for
from mtmc_engine.proof.variants import Plan, plan_cases
from mtmc_engine.proof.wire import Build, Case, Finding, Judged, Ran
from mtmc_engine.proof.work_names import CANDIDATE, JUDGE
from mtmc_engine.system.jobs import Ending, JobResult

# Elements of one input that the interpreter is given where no twin serves.
_MOST_OWN_ELEMENTS = 1 << 21

Through = Callable[[Outcome], None]


async def launch_and_compare(proof: Proof, through: Through) -> Outcome:
    """Runs both gates. `through` is called with the launch gate's outcome where that passes.

    Two failures are looked at once more, since the candidate may not be to blame: where a module
    packs weights in its constructor (a packed copy cannot follow load_state_dict), with weights
    as constructed; and where it fails at once on the shrunk twin (it may be made for the
    operator's own sizes), on those, with fewer rows where they may vary.
    """
    weights = proof.compiled.weights
    outcome = await _attempt(proof, weights, through)
    if outcome.verdict is not None and _failed_at_once(proof, outcome):
        on_twin = outcome.sentence
        plan = plan_cases(proof.subject.task, proof.compiled, proof.subject.seed, shrink=False)
        if plan.largest <= _MOST_OWN_ELEMENTS:
            proof.warnings.clear()
            outcome = await _attempt(proof, weights, through, plan)
            if outcome.verdict is None:
                proof.warn(f"it only works at its declared sizes; on a smaller twin: {on_twin}")
    derived = proof.compiled.derived
    packed = weights == "state_dict" and derived
    if packed and outcome.verdict in (Class.NUMERIC, Class.NONFINITE):
        proof.warn(f"it keeps {', '.join(derived[:3])} from its constructor")
        outcome = await _attempt(proof, "seed", through)
    return outcome


def _failed_at_once(proof: Proof, outcome: Outcome) -> bool:
    """Whether the very first case failed, and that was a twin's."""
    first = proof.plan.cases[0].name if proof.plan.cases else ""
    return proof.plan.twin is not None and outcome.evidence.get("case") == first


async def _attempt(
    proof: Proof, weights: str, through: Through, plan: Plan | None = None
) -> Outcome:
    subject = proof.subject
    proof.judged = None
    proof.code = msgspec.structs.replace(proof.code, weights=weights)
    if weights == "seed":
        proof.warn("parameters were not randomised: its weights do not follow the reference's")
    plan = plan or plan_cases(subject.task, proof.compiled, subject.seed)
    build = subject.build(subject.device, randomise=weights != "seed")
    if plan.twin is not None:
        build = msgspec.structs.replace(
            build, constants=plan.twin.constants, init_args=plan.twin.init_args
        )
    proof.plan = plan
    truth, proof.truths = await truths_for(proof, plan, build)
    for note in proof.truths.notes:
        proof.warn(note)
    results = subject.own_folder / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    try:
        failed = await _run(proof, build, truth, results, through)
        return failed or await _judge(proof, truth, results)
    finally:
        shutil.rmtree(results, ignore_errors=True)


async def _run(
    proof: Proof, build: Build, truth: Path, results: Path, through: Through
) -> Outcome | None:
    """Calls the candidate on every case; the outcome where it fails."""
    subject = proof.subject
    cases = proof.counted()
    buffers = {
        facts.path.removeprefix("buffer ")
        for number in cases
        for facts in proof.truths.cases[number].outputs
        if facts.kind == "buffer"
    }
    arguments = {
        "build": msgspec.to_builtins(build),
        "code": msgspec.to_builtins(proof.code),
        "cases": {str(n): msgspec.to_builtins(case) for n, case in cases.items()},
        "truth": str(truth),
        "results": str(results),
        "buffers": sorted(buffers),
        "card": None if subject.task.device.present else msgspec.to_builtins(subject.task.device),
    }
    heard = _Listener(proof, cases, through)
    parent = proof.workshop.device if subject.task.device.present else proof.workshop.interpret
    limits = proof.limits(subject.bounds.values_s)
    result = await parent.run(CANDIDATE, arguments, limits, heard)
    log = result.output[-8000:]
    if result.ending is not Ending.DONE:
        return _died(result, heard.current, log)
    proof.ran = msgspec.convert(result.value, Ran)
    return _ran(proof, proof.ran, cases, log)


class _Listener:
    """Follows the candidate through its cases."""

    def __init__(self, proof: Proof, cases: dict[int, Case], through: Through) -> None:
        self.proof, self.cases, self.through = proof, cases, through
        self.current: Case | None = None

    def __call__(self, value: Any) -> None:
        if value["done"] == 1:
            self.through(Outcome(None, "its first call returns"))
        self.current = self.cases[value["case"]]
        gate = Gate.VALUES if value["done"] else Gate.LAUNCH
        self.proof.tell(gate, value["done"], len(self.cases), self.current.name)


def _died(result: JobResult, current: Case | None, log: str) -> Outcome:
    if result.failure:
        result.unwrap()  # the reference's own error
    doing = f"computing {current.name}" if current else "being built"
    verdict, sentence = explain.ending(result, doing)
    evidence = {"case": current.name if current else "", "signal": result.signal}
    return Outcome(verdict, sentence, evidence, (log + result.traceback)[-8000:])


def _ran(proof: Proof, ran: Ran, cases: dict[int, Case], log: str) -> Outcome | None:
    """Failures that need no comparison; tolerable ones become warnings."""
    if ran.trouble is not None:
        verdict, sentence = explain.exception(ran.trouble)
        case = cases.get(ran.trouble.case)
        evidence: dict[str, Any] = {"line": ran.trouble.line, "error": ran.trouble.message}
        mutated = find_mutated(proof)
        if mutated is not None:
            also = {"also": sentence}
            return Outcome(mutated.verdict, mutated.sentence, {**mutated.evidence, **also}, log)
        if case is not None:
            evidence |= {"case": case.name, "shape": [list(s) for s in case.shapes]}
            sentence += f" ({case.name})"
        return Outcome(verdict, sentence, evidence, (ran.trouble.log + log)[-8000:])
    for call in ran.calls:
        if call.trouble is not None:
            case = cases[call.case]
            what = "empty input" if case.advisory else f"{case.layout} input"
            _, sentence = explain.exception(call.trouble)
            proof.warn(f"fails on {what} {case.name}: {sentence}")
        elif call.overruns:
            case = cases[call.case]
            sentence = f"{call.overruns[0]} ({case.name})"
            evidence = {"case": case.name, "overruns": list(call.overruns)}
            return Outcome(Class.ILLEGAL_ACCESS, sentence, evidence, log)
    return None


async def _judge(proof: Proof, truth: Path, results: Path) -> Outcome:
    """Compares what was saved, and puts the findings into words."""
    task = proof.subject.task
    came = {c.case for c in proof.ran.calls if c.trouble is None and not c.left_out}
    cases = {n: case for n, case in proof.counted().items() if n in came}
    arguments = {
        "cases": {str(n): msgspec.to_builtins(case) for n, case in cases.items()},
        "truths": {str(n): msgspec.to_builtins(proof.truths.cases[n]) for n in cases},
        "truth": str(truth),
        "results": str(results),
        "device": proof.subject.device,
        "nan": task.policy.nan,
        "atomics_bound": task.policy.atomics_bound,
    }
    limits = proof.limits(proof.subject.bounds.reference_s)
    result = await proof.workshop.device.run(JUDGE, arguments, limits)
    judged = msgspec.convert(result.unwrap(), Judged)
    proof.judged = judged
    for warning in judged.warnings:
        proof.warn(warning)
    wrong = []
    for finding in judged.findings:
        if cases[finding.case].advisory:
            proof.warn(f"wrong on an empty input: {finding.sentence}")
        else:
            wrong.append(finding)
    return _verdict(proof, judged, wrong, cases)


def _verdict(proof: Proof, judged: Judged, wrong: list[Finding], cases: dict[int, Case]) -> Outcome:
    count = f"{len(cases) - len(wrong)}/{len(cases)}"
    scope = {
        "cases": count,
        "scope": proof.plan.scope,
        "largest_elements": proof.plan.largest,
        "left_out": sum(call.left_out for call in proof.ran.calls),
        "names": [case.name for case in cases.values()],
    }
    if wrong:
        first = wrong[0]
        failing = [cases[finding.case].name for finding in wrong]
        evidence = {**scope, **first.evidence, "failing": failing}
        return Outcome(Class(first.verdict), first.sentence, evidence)
    evidence = {**scope, "worst_share_of_bound": judged.worst}
    if judged.worst_case >= 0:
        evidence["worst_case"] = cases[judged.worst_case].name
    return Outcome(None, f"values {count} on {proof.plan.scope}", evidence)
