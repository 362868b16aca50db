"""The reference's results for a plan's cases, kept for further candidates of the same task."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.core.verdict import Gate
from mtmc_engine.proof.gates.proof import Proof
from mtmc_engine.proof.variants import Plan
from mtmc_engine.proof.wire import Build, Truths
from mtmc_engine.proof.work_names import TRUTH
from mtmc_engine.system.jobs import Ending


@dataclass(frozen=True)
class Archive:
    """Truths in a folder. key: secret under which their fingerprints were taken."""

    folder: Path
    key: str
    truths: Truths


# The reference's own bad ends.
_ENDINGS = {
    Ending.TIMEOUT: "did not finish",
    Ending.MEMORY: "used too much memory",
    Ending.SIGNAL: "crashed",
    Ending.EXITED: "ended its own process",
}

# By folder. Kept in the engine's memory, where no candidate can change it.
_known: dict[str, Archive] = {}


async def truths_for(proof: Proof, plan: Plan, build: Build) -> Archive:
    """The truths of a plan's cases. Raises as make_truths does."""
    request = {"build": msgspec.to_builtins(build), "cases": msgspec.to_builtins(plan.cases)}
    key = hashlib.sha256(
        msgspec.json.encode([request, proof.subject.task.digest], order="sorted")
    ).hexdigest()[:16]
    folder = Path(proof.subject.folder) / f"truth-{key}"
    known = _known.get(str(folder))
    if known is not None and folder.exists():
        return known
    folder.mkdir(parents=True, exist_ok=True)

    def heard(value: Any) -> None:
        proof.tell(Gate.LAUNCH, detail=f"reference: {value['done']} of {value['total']}")

    limits = proof.limits(proof.subject.bounds.reference_s)
    secret = secrets.token_hex(16)
    arguments = {**request, "folder": str(folder), "key": secret}
    result = await proof.workshop.device.run(TRUTH, arguments, limits, heard)
    if result.ending in _ENDINGS and result.failure is None:
        bound = f"{limits.wall_s:g} s or {limits.memory_mb} MB"
        what = f"{_ENDINGS[result.ending]} while its results were computed (bounds: {bound})"
        raise ReferenceFailed(f"{Path(build.file).name}: the reference {what}.")
    truths = msgspec.convert(result.unwrap(), Truths)
    _known[str(folder)] = Archive(folder, secret, truths)
    return _known[str(folder)]
