"""Gates import and compile: the candidate is found, and its kernels compile for the target."""

from __future__ import annotations

from typing import Any

import msgspec

from mtmc_engine.core.verdict import Class, Gate
from mtmc_engine.proof import explain
from mtmc_engine.proof.gates.proof import Outcome, Proof
from mtmc_engine.proof.wire import Compiled, Launch, Target
from mtmc_engine.proof.work_names import COMPILE
from mtmc_engine.system.jobs import Ending, JobResult

# Characters of compiled code that are told and kept in the journal, for each candidate.
MOST_CODE = 80_000


async def compile_candidate(proof: Proof, through: Any) -> Outcome:
    """Runs both gates in one child. `through` is called with the import gate's outcome.

    Returns the compile gate's outcome, or the import gate's where that fails.
    """
    subject = proof.subject
    arguments = {
        "build": msgspec.to_builtins(subject.build("cpu")),
        "code": msgspec.to_builtins(proof.code),
        "target": msgspec.to_builtins(Target(subject.task.device)),
        "specs": msgspec.to_builtins([one.tensors for one in subject.task.inputs]),
    }
    stages: list[str] = []

    def heard(value: Any) -> None:
        stages.append(value.get("stage", ""))
        if value.get("stage") == "build":
            through(Outcome(None, "imported"))
        if "kernel" in value:
            proof.tell(Gate.COMPILE, detail=f"{value['kernel']} {value['configuration']}")

    limits = proof.limits(subject.bounds.compile_s)
    result = await proof.workshop.device.run(
        COMPILE, arguments, limits, heard, subject.compile_cache, confinement=subject.confined()
    )
    if result.ending is not Ending.DONE:
        return _died(result, stages)
    proof.compiled = msgspec.convert(result.value, Compiled)
    return _outcome(proof, proof.compiled, result)


def _died(result: JobResult, stages: list[str]) -> Outcome:
    if result.failure:
        result.unwrap()  # the reference's own error
    doing = {"import": "importing it", "build": "building it", "compile": "compiling it"}
    verdict, sentence = explain.ending(result, doing.get(stages[-1] if stages else "", "importing"))
    return Outcome(verdict, sentence, {"stage": stages[-1] if stages else ""}, _log(result))


def _log(result: JobResult) -> str:
    return (result.traceback + result.output)[-8000:]


def _outcome(proof: Proof, compiled: Compiled, result: JobResult) -> Outcome:
    for change in compiled.state_changes:
        proof.warn(f"importing it changes global state: {change}")
    if compiled.trouble is not None:
        verdict, sentence = explain.exception(compiled.trouble)
        evidence = {
            "line": compiled.trouble.line,
            "error": compiled.trouble.message,
            "kernels": [_told(launch) for launch in compiled.launches],
        }
        if verdict in (Class.RESOURCES, Class.LAUNCH):
            evidence |= _culprit(compiled)
            sentence = _with_configuration(sentence, compiled)
        if compiled.trouble.stage == "build":
            evidence["stage"] = "build"
        return Outcome(verdict, sentence, evidence, compiled.trouble.log + result.output[-2000:])
    return Outcome(None, *_passed(proof, compiled), result.output[-4000:], _code(compiled))


def _code(compiled: Compiled) -> dict[str, str]:
    """The PTX of all kernels, one after another under their names, within a bound."""
    texts: dict[str, None] = {}
    for launch in compiled.launches:
        if launch.ptx:
            texts[f"// {launch.kernel} {launch.configuration}".rstrip() + f"\n{launch.ptx}"] = None
    whole = "\n\n".join(texts)
    if len(whole) > MOST_CODE:
        cut = whole.rindex("\n", 0, MOST_CODE)
        whole = f"{whole[:cut]}\n// {whole.count(chr(10), cut)} more lines are not kept"
    return {"ptx": whole} if whole else {}


def _passed(proof: Proof, compiled: Compiled) -> tuple[str, dict[str, Any]]:
    target = f"sm_{proof.subject.task.device.arch}"
    good = [launch for launch in compiled.launches if not launch.error]
    for launch in compiled.launches:
        if launch.error:
            lines = launch.error.strip().splitlines() or ["no message"]
            proof.warn(f"{launch.kernel} ({launch.configuration}) does not compile: {lines[-1]}")
    for launch in good:
        if launch.spill_bytes:
            proof.warn(f"{launch.kernel} spills {launch.spill_bytes} bytes of registers per thread")
    evidence: dict[str, Any] = {
        "target": target,
        "kernels": [_told(launch) for launch in compiled.launches],
        "ahead": compiled.ahead,
    }
    if not compiled.ahead:
        evidence["why"] = compiled.why
        return f"not compiled ahead of time: {compiled.why}", evidence
    if not good:
        return "no Triton kernel is launched", evidence
    most = max(good, key=lambda launch: launch.registers or 0)
    counted = "1 kernel" if len(good) == 1 else f"{len(good)} kernels"
    facts = f"{most.registers} registers, {most.spill_bytes} spilled, {most.shared_bytes} B shared"
    return f"{counted} for {target}: {facts}", evidence


def _told(launch: Launch) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(launch)
    del told["ptx"]
    return told


def _culprit(compiled: Compiled) -> dict[str, Any]:
    bad = [launch for launch in compiled.launches if launch.error]
    if not bad:
        return {}
    return {
        "kernel": bad[-1].kernel,
        "configuration": bad[-1].configuration,
        "grid": list(bad[-1].grid),
        "shared_bytes": bad[-1].shared_bytes,
    }


def _with_configuration(sentence: str, compiled: Compiled) -> str:
    bad = [launch for launch in compiled.launches if launch.error]
    if not bad:
        return sentence
    return f"{bad[-1].kernel} with {bad[-1].configuration or 'its arguments'}: {sentence}"
