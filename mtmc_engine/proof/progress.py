"""What a display learns while a proof runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mtmc_engine.core.verdict import Gate, GateResult


@dataclass(frozen=True)
class GateProgress:
    """One moment of a proof.

    result: None while the gate runs, its outcome when it is through.
    done, total: cases judged so far, where they are counted; total 0 where nothing is counted.
    detail: what runs now, such as a case's name.
    """

    gate: Gate
    result: GateResult | None = None
    done: int = 0
    total: int = 0
    detail: str = ""


OnGate = Callable[[GateProgress], None]
