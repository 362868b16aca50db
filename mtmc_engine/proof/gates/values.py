"""Gates launch and values: the candidate runs, and its results are compared with the truth."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.core.verdict import Class, Gate
from mtmc_engine.proof import explain
from mtmc_engine.proof.gates.integrity import find_mutated
from mtmc_engine.proof.gates.proof import Outcome, Proof
from mtmc_engine.proof.gates.truths import Archive, truths_for
from mtmc_engine.proof.subject import Subject
from mtmc_engine.proof.timing.lock import lock_file
from mtmc_engine.proof.variants import Plan, plan_cases
from mtmc_engine.proof.wire import Build, Case, Finding, Judged, Ran
from mtmc_engine.proof.work_names import CANDIDATE, JUDGE
from mtmc_engine.system.jobs import Ending, JobResult

# Elements of one input that the interpreter is given where no twin serves.
_MOST_OWN_ELEMENTS = 1 << 21
# Of the notes of a task's opening, those that say that little can be proven about it.
_WEAK_NOTES = ("does not depend on", "keeps state", "not finite", "no tensor")
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
    plan = plan or plan_cases(subject.task, proof.compiled, subject.seed)
    build = subject.build(subject.device, randomise=weights != "seed")
    if plan.twin is not None:
        build = msgspec.structs.replace(
            build, constants=plan.twin.constants, init_args=plan.twin.init_args
        )
    proof.plan = plan
    archive = await truths_for(proof, plan, build)
    proof.truths = archive.truths
    if not proof.counted():
        why = proof.truths.cases[0].skipped if proof.truths.cases else "there is none"
        raise ReferenceFailed(f"{Path(build.file).name}: no case can be judged: {why}.")
    for note in _weaknesses(proof):
        proof.warn(note)
    with _results_folder(subject) as results:
        stop = f"stop-{secrets.token_hex(8)}"
        judging = asyncio.create_task(_judged(proof, archive, results, stop))
        try:
            failed = await _run(proof, build, archive.inputs, results, through)
            if failed is not None:
                return failed
            (archive.folder / stop).touch()
            return _weighed(proof, await judging)
        finally:
            judging.cancel()
            await asyncio.gather(judging, return_exceptions=True)
            (archive.folder / stop).unlink(missing_ok=True)


def _weaknesses(proof: Proof) -> list[str]:
    """Why this task proves less than others, one sentence each."""
    notes = [note for note in proof.subject.task.notes if any(w in note for w in _WEAK_NOTES)]
    if proof.plan.left_out:
        sets = " and ".join(proof.plan.left_out)
        notes.append(f"{sets}: compiled but not run here, for want of a GPU.")
    return [*notes, *proof.truths.notes]


@contextmanager
def _results_folder(subject: Subject) -> Iterator[Path]:
    """Where a candidate leaves its results, for as long as they are compared."""
    subject.results.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=subject.results))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _run(
    proof: Proof, build: Build, inputs: Path, results: Path, through: Through
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
        "strides": {str(n): proof.truths.cases[n].strides for n in cases},
        "inputs": str(inputs),
        "results": str(results),
        "buffers": sorted(buffers),
        "card": None if subject.task.device.present else msgspec.to_builtins(subject.task.device),
        "lock": lock_file() if subject.task.device.present else "",
    }
    heard = _Listener(proof, cases, through)
    parent = proof.workshop.device if subject.task.device.present else proof.workshop.interpret
    limits = proof.limits(subject.bounds.values_s)
    confinement = subject.confined(results)
    result = await parent.run(
        CANDIDATE, arguments, limits, heard, subject.compile_cache, confinement=confinement
    )
    log = result.output[-8000:]
    if result.ending is not Ending.DONE:
        return _died(result, heard.current, log)
    proof.ran = msgspec.convert(result.value, Ran)
    if proof.ran.trouble is None and proof.ran.token != subject.token:
        sentence = "the code that was run is not the code that was handed in"
        return Outcome(Class.SUSPICIOUS, sentence, {}, log)
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
            what = _advisory(case) if case.advisory else f"{case.layout} input"
            _, sentence = explain.exception(call.trouble)
            proof.warn(f"fails on {what} {case.name}: {sentence}")
        elif call.overruns:
            case = cases[call.case]
            sentence = f"{call.overruns[0]} ({case.name})"
            evidence = {"case": case.name, "overruns": list(call.overruns)}
            return Outcome(Class.ILLEGAL_ACCESS, sentence, evidence, log)
    return None


def _advisory(case: Case) -> str:
    return (
        "NaN in its input (see TASK['nan'])" if case.distribution == "with NaN" else "empty input"
    )


async def _judged(proof: Proof, archive: Archive, results: Path, stop: str) -> Judged:
    """Compares results as they arrive, until the file `stop` lies beside the truths."""
    task = proof.subject.task
    cases = proof.counted()
    arguments = {
        "cases": {str(n): msgspec.to_builtins(case) for n, case in cases.items()},
        "truths": {str(n): msgspec.to_builtins(proof.truths.cases[n]) for n in cases},
        "truth": str(archive.folder),
        "results": str(results),
        "key": archive.key,
        "stop": stop,
        "device": proof.subject.device,
        "nan": task.policy.nan,
        "atomics_bound": task.policy.atomics_bound,
    }
    bounds = proof.subject.bounds
    limits = proof.limits(bounds.values_s + bounds.reference_s)
    result = await proof.workshop.device.run(JUDGE, arguments, limits)
    return msgspec.convert(result.unwrap(), Judged)


def _weighed(proof: Proof, judged: Judged) -> Outcome:
    """The findings in words."""
    came = {c.case for c in proof.ran.calls if c.trouble is None and not c.left_out}
    if set(judged.seen) != came:
        missed = sorted(came.symmetric_difference(judged.seen))
        sentence = "the results that it left are not those of the calls that it tells of"
        return Outcome(Class.SUSPICIOUS, sentence, {"cases": missed})
    cases = {n: case for n, case in proof.counted().items() if n in came}
    proof.judged = judged
    for warning in judged.warnings:
        proof.warn(warning)
    wrong = [finding for finding in judged.findings if not cases[finding.case].advisory]
    for finding in judged.findings:
        case = cases[finding.case]
        # What is wrong with numbers is wrong with NaN among them: that says nothing new.
        if case.advisory and not (wrong and case.distribution == "with NaN"):
            proof.warn(f"wrong on {_advisory(case)}: {finding.sentence}")
    return _verdict(proof, judged, wrong, cases)


def _verdict(proof: Proof, judged: Judged, wrong: list[Finding], cases: dict[int, Case]) -> Outcome:
    count = f"{len(cases) - len(wrong)}/{len(cases)}"
    scope = {
        "cases": count,
        "scope": proof.plan.scope,
        "largest_elements": proof.plan.largest,
        "left_out": sum(call.left_out for call in proof.ran.calls),
        "names": [case.name for case in cases.values()],
        "weak": _weaknesses(proof),
    }
    if wrong:
        first = wrong[0]
        failing = [cases[finding.case].name for finding in wrong]
        evidence = {**scope, **first.evidence, "failing": failing}
        return Outcome(Class(first.verdict), first.sentence + _unmatched(proof), evidence)
    evidence = {**scope, "worst_share_of_bound": judged.worst}
    if judged.worst_case >= 0:
        evidence["worst_case"] = cases[judged.worst_case].name
    return Outcome(None, f"values {count} on {proof.plan.scope}", evidence)


def _unmatched(proof: Proof) -> str:
    """What to add where the candidate's weights could only be made alike by the seed."""
    if proof.compiled.weights != "seed":
        return ""
    return (
        "; its weights have other names or shapes than the reference's, so that they agree only "
        "where both constructors draw the same numbers: name them alike, or give from_reference()"
    )
