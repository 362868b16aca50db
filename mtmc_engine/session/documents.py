"""The commands that answer with one document: check, doctor, sessions, export, models."""

from __future__ import annotations

import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from msgspec import Struct

from mtmc_engine.capture.source import read_source
from mtmc_engine.core.errors import MtmcError, ReferenceFailed, UsageError
from mtmc_engine.core.events import Exported
from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Class, GateResult, Verdict
from mtmc_engine.proof.check import accept, evidence_of
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
from mtmc_engine.system.jobs import Workshop
from mtmc_engine.system.model_file import ModelFacts, bundled, check_gguf
from mtmc_engine.system.paths import data_folder


class CheckOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of `check`. require_faster: SAME, SLOWER and the like are rejected too."""

    require_faster: bool = False
    target: str = ""
    seed: int = 0


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
    """A model that a planner can use: its `--planner` spec, and its facts or what is wrong."""

    spec: str
    path: str
    facts: ModelFacts | None = None
    problem: str = ""


async def check(file: str, candidate: str, options: CheckOptions) -> CheckReport:
    """Judge a kernel from anywhere against the reference in `file`."""
    try:
        return await _judged(file, candidate, options, load_config())
    except ReferenceFailed as error:
        return CheckReport(
            file,
            candidate,
            accepted=False,
            exit_code=2,
            verdict=Class.REFERENCE_ERROR.value,
            reason=str(error),
            error=str(error),
            evidence={"file": file, "line": error.line},
        )
    except MtmcError as error:
        return CheckReport(file, candidate, accepted=False, exit_code=2, error=str(error))


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
        program=best.program,
        plan=restored.tree.phrases(best.id),
        steps=summarise(restored.tree, restored.records),
        verdict=best.verdict,
        measurement=best.measurement,
        folder=folder,
    )


def models() -> list[ModelEntry]:
    """The bundled model, and those in the user's data folder."""
    found = bundled()
    entries = [_model("llama", found)] if found else []
    folder = data_folder() / "models"
    return entries + [_model(f"llama:{path}", path) for path in sorted(folder.glob("*.gguf"))]


def _model(spec: str, path: Path) -> ModelEntry:
    try:
        return ModelEntry(spec, str(path), check_gguf(path))
    except UsageError as error:
        return ModelEntry(spec, str(path), problem=str(error))


async def _judged(file: str, candidate: str, options: CheckOptions, config: Config) -> CheckReport:
    read_source(file)
    path = Path(candidate).expanduser().absolute()
    source = _candidate_text(path, candidate)
    device = await target_card(options.target or config.target)
    _talk(f"opening {file}")
    async with AsyncExitStack() as stack:
        workshop = Workshop(config.confine)
        stack.push_async_callback(workshop.close)
        task = await open_task(file, device, options.seed, workshop, config.limits)
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="mtmc-check-"))
        subject = Subject(
            task=task,
            source=source,
            name=path.stem,
            folder=scratch,
            seed=options.seed,
            beside=str(path.parent),
            bounds=Bounds.of(config.limits),
        )
        verdict = await prove(subject, workshop, _tell)
    return _report(file, candidate, task, verdict, options)


def _candidate_text(path: Path, given: str) -> str:
    if path.is_dir():
        raise UsageError(f"{given} is a directory; name the file with the kernel.")
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"There is no file {given}; check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{given} cannot be read: {error}.") from error


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
