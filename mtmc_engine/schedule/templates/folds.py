"""What folds start from."""

from __future__ import annotations

from mtmc_engine.schedule.templates.tensors import Fold, Number, is_float

INF = float("inf")
_INTEGER_RANGES = {
    "uint8": (0, 255),
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


def identity(fold: Fold, dtype: str) -> Number:
    """The element that changes nothing under a fold."""
    if fold in ("sum", "prod"):
        start = int(fold == "prod")
        return float(start) if is_float(dtype) else start
    if is_float(dtype):
        return -INF if fold in ("max", "argmax") else INF
    lowest, highest = _INTEGER_RANGES[dtype]
    return lowest if fold in ("max", "argmax") else highest
