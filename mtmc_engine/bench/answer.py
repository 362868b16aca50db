"""A walk's outcome as a line."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from mtmc_engine.bench.line import FAILED, ORIGINAL, Line, StepLine
from mtmc_engine.bench.opened import Opened
from mtmc_engine.bench.setting import Bench
from mtmc_engine.bench.tasks import BenchTask
from mtmc_engine.core.measurement import Measurement, Ratio
from mtmc_engine.core.task import Task
from mtmc_engine.core.verdict import Gate, Verdict
from mtmc_engine.plan.tree import ROOT, PlanTree, TreeNode

# What "strict" asks for beside a task's own inputs; names of the proof's distributions.
HIDDEN = ("times 3", "times 0.01", "negated")
_MOST_WARNINGS = 8


class Footprint(Struct, frozen=True):
    """peak_bytes: device memory that a call takes beyond inputs and parameters.

    first_call_us: of the first call in a process, kernels loaded from disk. launch_us: until a
    later call returns to its caller.
    """

    peak_bytes: int
    first_call_us: float
    launch_us: float


@dataclass(frozen=True)
class Outcome:
    """A walk that came to its end. phases: wall seconds; seconds: all of the task's own.

    footprint: of the best program, None where it was not measured.
    """

    tree: PlanTree
    footprint: Footprint | None
    phases: dict[str, float]
    seconds: float
    warnings: tuple[str, ...]


def line_of(bench: Bench, opened: Opened, outcome: Outcome) -> Line:
    """The line of the best proven program; of the original where that is the best."""
    tree, footprint = outcome.tree, outcome.footprint
    best = tree.best()
    is_original = best.id == ROOT
    facts = {} if best.verdict is None else _facts(best.verdict)
    missing = () if is_original else _missing(opened.task, best.verdict)
    accepted = is_original or bench.options.protocol == "plain" or not missing
    nothing_own = is_original and opened.task.device.present
    own_share = facts.get("own_share", 0.0 if nothing_own else None)
    measurement = best.measurement
    return Line(
        **_identity(bench, opened.bench_task),
        verdict=ORIGINAL if best.verdict is None else best.verdict.verdict.value,
        reason=_reason(tree, best, () if accepted else missing),
        proven=accepted,
        seconds=outcome.seconds,
        time_kind=measurement.kind if measurement else None,
        against=_against(measurement, is_original),
        time_us=measurement.time_us if measurement else None,
        floor_us=measurement.floor_us if measurement else None,
        floor_share=_floor_share(measurement),
        own_share=own_share,
        peak_bytes=footprint.peak_bytes if footprint else None,
        first_call_us=footprint.first_call_us if footprint else None,
        launch_us=footprint.launch_us if footprint else None,
        answer=best.id,
        steps=tuple(_step(node) for node in tree if node.action is not None),
        missing=missing,
        warnings=outcome.warnings[:_MOST_WARNINGS],
        gpu_s=sum(_facts(n.verdict).get("gpu_s", 0.0) for n in tree if n.verdict is not None),
        phases={name: round(seconds, 3) for name, seconds in outcome.phases.items()},
    )


def failed_line(bench: Bench, bench_task: BenchTask, reason: str, seconds: float) -> Line:
    """The line of a task that could not be walked."""
    return Line(
        **_identity(bench, bench_task),
        verdict=FAILED,
        reason=reason,
        proven=False,
        seconds=seconds,
    )


def _identity(bench: Bench, bench_task: BenchTask) -> dict[str, Any]:
    return {
        "task": bench_task.name,
        "family": bench_task.family,
        "file": str(bench_task.file),
        "digest": bench_task.digest,
        "protocol": bench.options.protocol,
        "precision": bench.options.precision,
        "device": bench.device.name,
    }


def _facts(verdict: Verdict) -> dict[str, Any]:
    """Evidence of all gates together."""
    return {key: value for gate in verdict.gates for key, value in gate.evidence.items()}


def _missing(task: Task, verdict: Verdict | None) -> tuple[str, ...]:
    """Hidden inputs that were not among the cases; there are none without floating point."""
    tensors = task.inputs[0].tensors
    if verdict is None or not any("float" in spec.dtype for spec in tensors):
        return ()
    values = next((gate for gate in verdict.gates if gate.gate is Gate.VALUES), None)
    names = list(values.evidence.get("names", ())) if values else []
    kinds = {part.strip() for name in names for part in name.split(",")}
    return tuple(one for one in HIDDEN if one not in kinds)


def _reason(tree: PlanTree, best: TreeNode, missing: tuple[str, ...]) -> str:
    if best.verdict is None:
        judged = Counter(node.verdict.verdict.value for node in tree if node.verdict is not None)
        became = ", ".join(f"{count} {verdict}" for verdict, count in judged.items())
        return f"No step is proven faster than the original ({became or 'none was tried'})."
    if missing:
        return f"Not proven on hidden inputs: {', '.join(missing)}."
    return best.verdict.reason


def _against(measurement: Measurement | None, is_original: bool) -> dict[str, Ratio]:
    """Ratios to eager and torch.compile; what is estimated is compared with eager alone.

    The original is what eager runs: whatever was measured between the two is noise.
    """
    if measurement is None:
        return {}
    against = measurement.against
    eager = against.get("original" if measurement.kind == "estimated" else "eager")
    found = {"eager": Ratio(1.0, 1.0, 1.0) if is_original else eager}
    found["torch.compile"] = against.get("torch.compile")
    return {name: ratio for name, ratio in found.items() if ratio is not None}


def _floor_share(measurement: Measurement | None) -> float | None:
    if measurement is None or not measurement.time_us or math.isinf(measurement.time_us):
        return None
    return measurement.floor_us / measurement.time_us


def _step(node: TreeNode) -> StepLine:
    assert node.action is not None
    ratio = node.measurement.against.get("previous") if node.measurement else None
    return StepLine(
        phrase=node.action.phrase,
        verdict=node.verdict.verdict.value if node.verdict else "",
        state=node.state,
        ratio=ratio.value if ratio else None,
        time_us=node.measurement.time_us if node.measurement else None,
        reason="" if node.verdict is None or node.verdict.proven else node.verdict.reason,
        seconds=sum(gate.seconds for gate in node.verdict.gates) if node.verdict else 0.0,
    )
