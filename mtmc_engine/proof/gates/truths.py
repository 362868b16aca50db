"""The reference's results for a plan's cases, kept for further candidates of the same task."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from mtmc_engine.core.verdict import Gate
from mtmc_engine.proof.gates.proof import Proof
from mtmc_engine.proof.variants import Plan
from mtmc_engine.proof.wire import Build, Truths
from mtmc_engine.proof.work_names import TRUTH

# By folder. Kept in the engine's memory, where no candidate can change it.
_known: dict[str, Truths] = {}


async def truths_for(proof: Proof, plan: Plan, build: Build) -> tuple[Path, Truths]:
    """The folder of truths and the facts about them. Raises as make_truths does."""
    request = {"build": msgspec.to_builtins(build), "cases": msgspec.to_builtins(plan.cases)}
    key = hashlib.sha256(
        msgspec.json.encode([request, proof.subject.task.digest], order="sorted")
    ).hexdigest()[:16]
    folder = Path(proof.subject.folder) / f"truth-{key}"
    known = _known.get(str(folder))
    if known is not None and folder.exists():
        return folder, known
    folder.mkdir(parents=True, exist_ok=True)

    def heard(value: Any) -> None:
        proof.tell(Gate.LAUNCH, detail=f"reference: {value['done']} of {value['total']}")

    limits = proof.limits(proof.subject.bounds.reference_s)
    arguments = {**request, "folder": str(folder)}
    result = await proof.workshop.device.run(TRUTH, arguments, limits, heard)
    truths = msgspec.convert(result.unwrap(), Truths)
    _known[str(folder)] = truths
    return folder, truths
