"""The document of `check`: a verdict as scripts read it."""

from __future__ import annotations

from typing import Any

import msgspec

from mtmc_engine.core.task import Policy
from mtmc_engine.core.verdict import Class, Verdict


def accept(verdict: Verdict, policy: Policy, require_faster: bool = False) -> int:
    """The exit code: 0 accepted, 1 rejected, 2 could not be judged (the table of proof.md)."""
    if verdict.verdict is Class.REFERENCE_ERROR:
        return 2
    if require_faster:
        return 0 if verdict.verdict is Class.FASTER else 1
    library = verdict.verdict is Class.NOT_OWN_KERNEL and policy.library == "allow"
    return 0 if verdict.proven or library else 1


def evidence_of(verdict: Verdict) -> dict[str, Any]:
    """Evidence of the gate that decided; of a proven candidate that of all gates together."""
    if not verdict.proven:
        return verdict.evidence
    return {key: value for gate in verdict.gates for key, value in gate.evidence.items()}


def document(verdict: Verdict, policy: Policy, require_faster: bool = False) -> dict[str, Any]:
    """{"verdict", "accepted", "reason", "evidence", "gates", "warnings", "measurement"}."""
    return {
        "verdict": verdict.verdict.value,
        "accepted": accept(verdict, policy, require_faster) == 0,
        "reason": verdict.reason,
        "evidence": evidence_of(verdict),
        "gates": msgspec.to_builtins(verdict.gates),
        "warnings": list(verdict.warnings),
        "measurement": msgspec.to_builtins(verdict.measurement),
    }
