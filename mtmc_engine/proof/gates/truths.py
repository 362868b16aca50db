"""The reference's results for a plan's cases, kept for further candidates of the same task."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.core.errors import ReferenceFailed
from mtmc_engine.core.verdict import Gate
from mtmc_engine.proof.gates.proof import Proof
from mtmc_engine.proof.variants import Plan
from mtmc_engine.proof.wire import Build, Case, Truth, Truths
from mtmc_engine.proof.work_names import TRUTH
from mtmc_engine.system.jobs import Ending


@dataclass(frozen=True)
class Archive:
    """What the reference gave, and what for.

    inputs: folder of the cases' inputs and the weights, which candidates read. folder: of the
    truths, which they must not. key: secret under which the truths' fingerprints were taken.
    """

    inputs: Path
    folder: Path
    key: str
    truths: Truths


@dataclass
class _Shelf:
    """All truths of one build. first: of the first plan, which had the file's own inputs."""

    inputs: Path
    folder: Path
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    truths: dict[str, Truth] = field(default_factory=dict)
    first: Truths | None = None
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def add(self, cases: tuple[Case, ...], found: Truths) -> None:
        self.truths |= dict(zip((case.key for case in cases), found.cases, strict=True))
        self.first = self.first or found


# The reference's own bad ends.
_ENDINGS = {
    Ending.TIMEOUT: "did not finish",
    Ending.MEMORY: "used too much memory",
    Ending.SIGNAL: "crashed",
    Ending.EXITED: "ended its own process",
}

# By folder. Kept in the engine's memory, where no candidate can change it.
_shelves: dict[str, _Shelf] = {}


async def truths_for(proof: Proof, plan: Plan, build: Build) -> Archive:
    """The truths of a plan's cases. Raises as make_truths does.

    The reference is only asked for cases that no earlier candidate was compared on: candidates of
    other block sizes share all but some boundary shapes.
    """
    facts = [msgspec.to_builtins(build), proof.subject.task.digest]
    digest = hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:16]
    inputs, folder = Path(proof.subject.folder) / f"inputs-{digest}", proof.subject.truths / digest
    shelf = _shelves.get(str(folder))
    if shelf is None or not folder.exists():
        shelf = _shelves[str(folder)] = _Shelf(inputs, folder)
        for place in (inputs, folder):
            place.mkdir(parents=True, exist_ok=True)
    async with shelf.asking:
        missing = tuple(case for case in plan.cases if case.key not in shelf.truths)
        if missing:
            shelf.add(missing, await _asked(proof, build, shelf, missing))
    first = shelf.first
    assert first is not None
    cases = tuple(shelf.truths[case.key] for case in plan.cases)
    return Archive(inputs, folder, shelf.secret, msgspec.structs.replace(first, cases=cases))


async def _asked(proof: Proof, build: Build, shelf: _Shelf, cases: tuple[Case, ...]) -> Truths:
    """What the reference's process says of further cases."""

    def heard(value: Any) -> None:
        proof.tell(Gate.LAUNCH, detail=f"reference: {value['done']} of {value['total']}")

    limits = proof.limits(proof.subject.bounds.reference_s)
    arguments = msgspec.to_builtins(
        {
            "build": build,
            "cases": cases,
            "inputs": str(shelf.inputs),
            "truths": str(shelf.folder),
            "key": shelf.secret,
            "known": shelf.first and msgspec.structs.replace(shelf.first, cases=()),
        }
    )
    result = await proof.workshop.device.run(TRUTH, arguments, limits, heard)
    if result.ending in _ENDINGS and result.failure is None:
        bound = f"{limits.wall_s:g} s or {limits.memory_mb} MB"
        what = f"{_ENDINGS[result.ending]} while its results were computed (bounds: {bound})"
        raise ReferenceFailed(f"{Path(build.file).name}: the reference {what}.")
    return msgspec.convert(result.unwrap(), Truths)
