"""A proof under way: what gates learn and hand on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mtmc_engine.core.measurement import Measurement
from mtmc_engine.core.verdict import Class, Gate, GateResult
from mtmc_engine.proof.gates.parse import Outline
from mtmc_engine.proof.progress import GateProgress, OnGate
from mtmc_engine.proof.subject import Subject
from mtmc_engine.proof.variants import Plan
from mtmc_engine.proof.wire import CandidateCode, Case, Compiled, Judged, Ran, Truths
from mtmc_engine.system.jobs import Limits, Workshop


@dataclass(frozen=True)
class Outcome:
    """What a gate found. verdict: None where it passes. code: as in GateResult."""

    verdict: Class | None
    sentence: str
    evidence: dict[str, Any] = field(default_factory=dict)
    log: str = ""
    code: dict[str, str] = field(default_factory=dict)


def sayable(value: Any) -> Any:
    """Evidence as JSON can say it: NaN and infinities become words instead of nothing."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {name: sayable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [sayable(item) for item in value]
    return value


@dataclass
class Proof:
    """Facts about one candidate, filled in by the gates in order."""

    subject: Subject
    workshop: Workshop
    on_gate: OnGate
    code: CandidateCode
    outline: Outline = field(default_factory=lambda: Outline(()))
    compiled: Compiled = field(default_factory=lambda: Compiled(None))
    plan: Plan = field(default_factory=lambda: Plan((), None, "", 0))
    truths: Truths = field(default_factory=lambda: Truths(()))
    ran: Ran = field(default_factory=lambda: Ran(()))
    judged: Judged | None = None
    measurement: Measurement | None = None
    speed: Class = Class.UNTIMED
    warnings: list[str] = field(default_factory=list)
    results: list[GateResult] = field(default_factory=list)

    def warn(self, sentence: str) -> None:
        """Adds a warning, once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def limits(self, wall_s: float) -> Limits:
        return self.subject.bounds.limits(wall_s)

    def tell(self, gate: Gate, done: int = 0, total: int = 0, detail: str = "") -> None:
        self.on_gate(GateProgress(gate, None, done, total, detail))

    def counted(self) -> dict[int, Case]:
        """Cases that the reference accepts, by number."""
        pairs = zip(self.plan.cases, self.truths.cases, strict=True)
        return {i: case for i, (case, truth) in enumerate(pairs) if not truth.skipped}


JobProgress = Callable[[Any], None]
