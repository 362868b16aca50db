"""What became of a candidate: gates, verdict classes and their evidence."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct

from mtmc_engine.core.measurement import Measurement


class Gate(StrEnum):
    """The stages of proof, in order."""

    PARSE = "parse"
    IMPORT = "import"
    COMPILE = "compile"
    LAUNCH = "launch"
    VALUES = "values"
    INTEGRITY = "integrity"
    TIMING = "timing"


class Class(StrEnum):
    """The outcome classes of a candidate."""

    SYNTAX = "SYNTAX"
    IMPORT = "IMPORT"
    COMPILE = "COMPILE"
    RESOURCES = "RESOURCES"
    LAUNCH = "LAUNCH"
    ILLEGAL_ACCESS = "ILLEGAL_ACCESS"
    TIMEOUT = "TIMEOUT"
    OOM = "OOM"
    SHAPE = "SHAPE"
    DTYPE = "DTYPE"
    LAYOUT = "LAYOUT"
    NONFINITE = "NONFINITE"
    NUMERIC = "NUMERIC"
    RUNTIME = "RUNTIME"
    MUTATED_INPUT = "MUTATED_INPUT"
    ALIASED = "ALIASED"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    STATE_DRIFT = "STATE_DRIFT"
    NOT_OWN_KERNEL = "NOT_OWN_KERNEL"
    SUSPICIOUS = "SUSPICIOUS"
    SLOWER = "SLOWER"
    SAME = "SAME"
    AMBIGUOUS = "AMBIGUOUS"
    FASTER = "FASTER"
    UNTIMED = "UNTIMED"
    REFERENCE_ERROR = "REFERENCE_ERROR"


# Values and integrity are proven; only the speed differs.
PROVEN = frozenset({Class.FASTER, Class.SAME, Class.AMBIGUOUS, Class.SLOWER, Class.UNTIMED})


class GateResult(Struct, frozen=True):
    """What one gate found.

    seconds:  wall-clock time of the gate.
    sentence: one plain sentence; for a failed gate the explanation of the verdict.
    evidence: JSON facts: cases run, registers, spills, shared bytes, errors, first wrong index.
    log:      tail of the compiler's or the candidate's own output, at most 8,000 characters.
    code:     what a kernel was compiled to, by language ("ptx"); told when the gate finishes only.
    """

    gate: Gate
    passed: bool
    seconds: float
    sentence: str = ""
    evidence: dict[str, Any] = {}
    log: str = ""
    code: dict[str, str] = {}


class Verdict(Struct, frozen=True):
    """The outcome of a candidate, with all gates that ran.

    reason:   one plain sentence.
    warnings: sentences; never a reason to reject.
    """

    verdict: Class
    reason: str
    gates: tuple[GateResult, ...] = ()
    warnings: tuple[str, ...] = ()
    measurement: Measurement | None = None

    @property
    def proven(self) -> bool:
        return self.verdict in PROVEN

    @property
    def evidence(self) -> dict[str, Any]:
        """Evidence of the gate that decided: the last one that ran."""
        return self.gates[-1].evidence if self.gates else {}
