"""The commands that answer with one document: check, doctor, sessions, export, models."""

from __future__ import annotations

import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mtmc_engine.capture.source import named_file, read_source, source_text
from mtmc_engine.core.errors import MtmcError, ReferenceFailed, UsageError
from mtmc_engine.core.events import Exported
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.options import Seed
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Class, Gate, GateResult, Verdict
from mtmc_engine.proof.check import accept, evidence_of
from mtmc_engine.proof.gates.parse import SyntaxProblem, outline
from mtmc_engine.proof.progress import GateProgress
from mtmc_engine.proof.prove import Bounds, Subject, prove
from mtmc_engine.session.catalogue import (
    SessionEntry,
    find_session,
    journals_folder,
    list_sessions,
)
from mtmc_engine.session.journal import Journal
from mtmc_engine.session.opening import open_task, target_card
from mtmc_engine.session.restore import Restored, stored_task
from mtmc_engine.session.seams import Exporter
from mtmc_engine.session.stale import content_digest
from mtmc_engine.session.summary import summarise
from mtmc_engine.system import doctor as machine
from mtmc_engine.system.checks import Check
from mtmc_engine.system.config import Config, load_config
from mtmc_engine.system.configured import Configured, configured_models
from mtmc_engine.system.jobs import Workshop
from mtmc_engine.system.model_file import ModelFacts, bundled, check_gguf
from mtmc_engine.system.paths import data_folder
from mtmc_engine.system.scratch import scratch_folder


class CheckOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of `check`. require_faster: SAME, SLOWER and the like are rejected too.

    reference: as in RunOptions.
    """

    require_faster: bool = False
    target: str = ""
    seed: Seed = 0
    reference: str = ""


class CheckReport(Struct, frozen=True):
    """The judgement on a candidate.

    exit_code: 0 accepted, 1 rejected, 2 could not judge; `error` then says why.
    """

    file: str
    candidate: str
    accepted: bool
    exit_code: int
    verdict: str | None = None
    reason: str = ""
    error: str = ""
    task: str = ""
    target: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    evidence: dict[str, Any] = {}
    gates: tuple[GateResult, ...] = ()
    measurement: Measurement | None = None


class DoctorReport(Struct, frozen=True):
    """What is here. ok: nothing that is required is missing."""

    ok: bool
    checks: tuple[Check, ...]


class ModelEntry(Struct, frozen=True):
    """A model that a planner can use: its `--planner` spec, and its facts or what is wrong.

    configured: "planner" or "coder" where the settings name it; `found` then says where it is
    asked, and which variable of the environment holds its key.
    """

    spec: str
    path: str
    facts: ModelFacts | None = None
    problem: str = ""
    configured: str = ""
    found: str = ""


async def check(file: str, candidate: str, options: CheckOptions) -> CheckReport:
    """Judge a kernel from anywhere against the reference in `file`."""
    try:
        return await _judged(file, candidate, options, load_config())
    except MtmcError as error:
        told = str(error)
        line = error.line if isinstance(error, ReferenceFailed) else _line_in(told)
        report = CheckReport(file, candidate, accepted=False, exit_code=2, reason=told, error=told)
        if not line and not isinstance(error, ReferenceFailed):
            return report
        verdict = Class.REFERENCE_ERROR.value
        evidence = {"file": file, "line": line}
        return msgspec.structs.replace(report, verdict=verdict, evidence=evidence)


async def doctor() -> DoctorReport:
    """Look at this machine."""
    workshop = Workshop()
    try:
        checks = await machine.examine(workshop)
    finally:
        await workshop.close()
    return DoctorReport(all(one.ok or not one.required for one in checks), tuple(checks))


def sessions() -> list[SessionEntry]:
    """All sessions, newest first."""
    return list_sessions(journals_folder())


def export(session: str, folder: Path, exporter: Exporter) -> Exported:
    """Write the best proven program of a session, finished or not.

    Raises UsageError where there is nothing to export, or where the user's file has changed.
    """
    journal = Journal.read(find_session(journals_folder(), session))
    try:
        restored = Restored(journal)
        if restored.tree is None or journal.fact("task") is None:
            raise UsageError(f"Session {journal.session} had not begun: there is nothing in it.")
        task = stored_task(journal)
    finally:
        journal.close()
    if content_digest(Path(task.file)) != task.digest:
        raise UsageError(
            f"{task.file} has changed since session {journal.session}: restore it, or run again."
        )
    exporter.check(folder)
    best = restored.tree.best()
    return exporter.write(
        task=task,
        path=restored.tree.path(best.id),
        steps=summarise(restored.tree, restored.records),
        folder=folder,
    )


def models() -> list[ModelEntry]:
    """The bundled model, those in the user's data folder, and those that the settings name.

    Raises UsageError where the settings cannot be read.
    """
    found = bundled()
    entries = [_model("llama", found)] if found else []
    folder = data_folder() / "models"
    entries += [_model(f"llama:{path}", path) for path in sorted(folder.glob("*.gguf"))]
    return entries + [_configured(one) for one in configured_models(load_config())]


def _configured(one: Configured) -> ModelEntry:
    problem, found = ("", one.found) if one.ok else (one.found, "")
    return ModelEntry(one.spec, "", None, problem, one.role, found)


def _model(spec: str, path: Path) -> ModelEntry:
    try:
        return ModelEntry(spec, str(path), check_gguf(path))
    except UsageError as error:
        return ModelEntry(spec, str(path), problem=str(error))


async def _judged(file: str, candidate: str, options: CheckOptions, config: Config) -> CheckReport:
    read_source(file)
    path = named_file(candidate, "the file with the kernel")
    source = source_text(path)
    device = await target_card(options.target or config.target)
    problem = outline(source)
    if isinstance(problem, SyntaxProblem):  # answered before anything is started
        return _not_python(file, candidate, problem, device.name)
    _talk(f"opening {file}")
    async with AsyncExitStack() as stack:
        workshop = Workshop(config.confine)
        stack.push_async_callback(workshop.close)
        named = options.reference
        try:
            task = await open_task(
                file, device, options.seed, workshop, config.limits, reference=named
            )
        except UsageError as error:
            if named:  # which may be what is wrong
                raise
            raise ReferenceFailed(str(error), _line_in(str(error))) from error
        scratch = stack.enter_context(scratch_folder())
        subject = Subject(
            task=task,
            source=source,
            name=path.stem,
            folder=str(scratch),
            seed=options.seed,
            beside=str(path.parent),
            bounds=Bounds.of(config.limits),
        )
        verdict = await prove(subject, workshop, _tell)
    return _report(file, candidate, task, verdict, options)


def _not_python(file: str, candidate: str, problem: SyntaxProblem, target: str) -> CheckReport:
    """The judgement of the first gate alone."""
    evidence = {"line": problem.line}
    gate = GateResult(Gate.PARSE, False, 0.0, problem.sentence, evidence)
    return CheckReport(
        file=file,
        candidate=candidate,
        accepted=False,
        exit_code=1,
        verdict=Class.SYNTAX.value,
        reason=problem.sentence,
        task=Path(file).stem,
        target=target,
        evidence=evidence,
        gates=(gate,),
    )


def _line_in(sentence: str) -> int:
    """The line that a sentence such as "op.py:4: …" names, 0 where it names none."""
    found = re.match(r"[^:]+:(\d+):", sentence)
    return int(found.group(1)) if found else 0


def _report(
    file: str, candidate: str, task: Task, verdict: Verdict, options: CheckOptions
) -> CheckReport:
    unjudged = verdict.verdict is Class.REFERENCE_ERROR
    exit_code = accept(verdict, task.policy, options.require_faster)
    return CheckReport(
        file=file,
        candidate=candidate,
        accepted=exit_code == 0,
        exit_code=exit_code,
        verdict=verdict.verdict.value,
        reason=verdict.reason,
        error=verdict.reason if unjudged else "",
        task=task.name,
        target=task.device.name,
        warnings=verdict.warnings,
        notes=task.notes,
        evidence=evidence_of(verdict),
        gates=verdict.gates,
        measurement=verdict.measurement,
    )


def _tell(progress: GateProgress) -> None:
    if progress.result is not None:
        word = "ok" if progress.result.passed else "failed"
        _talk(f"{progress.gate.value}: {word}, {progress.result.seconds:.1f} s")


def _talk(text: str) -> None:
    """What happens meanwhile, for who sits and waits; a script reads one sentence at most."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)
