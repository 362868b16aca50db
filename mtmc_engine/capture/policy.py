"""The TASK declaration of the user's file, read into a Policy."""

from __future__ import annotations

from typing import Any

import msgspec

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.task import Policy
from mtmc_engine.system.suggest import nearest

_DTYPES = ("float32", "float16", "bfloat16", "float64")


def read_policy(declared: Any, overrides: dict[str, Any], file_name: str) -> Policy:
    """The policy of a task: what the file declares, with flags on top.

    `shapes` may be short: a list of shapes where the call has one tensor. `dtypes` may hold torch
    dtypes. Raises UsageError for unknown keys (the nearest known one is named) and wrong values.
    """
    if not isinstance(declared, dict):
        raise UsageError(
            f"TASK in {file_name} must be a dictionary, not {type(declared).__name__}."
        )
    keys = {**declared, **overrides}
    known = Policy.__struct_fields__
    for key in keys:
        if key not in known:
            close = nearest(str(key), known)
            raise UsageError(
                f"TASK in {file_name} has an unknown key {key!r}; did you mean {close!r}?"
            )
    if "shapes" in keys:
        keys["shapes"] = _input_sets(keys["shapes"])
    if "dtypes" in keys:
        keys["dtypes"] = [_dtype(d, file_name) for d in _listed(keys["dtypes"])]
    if "vary" in keys:
        keys["vary"] = _listed(keys["vary"])
    try:
        return msgspec.convert(keys, Policy)
    except msgspec.ValidationError as error:
        message = str(error)[0].lower() + str(error)[1:]
        raise UsageError(f"TASK in {file_name} has a wrong value: {message}.") from error


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | set) else [value]


def _dtype(value: Any, file_name: str) -> str:
    name = str(value).removeprefix("torch.")
    if name not in _DTYPES:
        raise UsageError(
            f"TASK dtypes in {file_name} names {name!r}; did you mean {nearest(name, _DTYPES)!r}?"
        )
    return name


def _input_sets(shapes: Any) -> Any:
    """[(4096, 64), (1, 64)] for a call with one tensor means [((4096, 64),), ((1, 64),)]."""
    if not isinstance(shapes, list | tuple):
        return shapes
    return [
        [one] if isinstance(one, list | tuple) and all(isinstance(d, int) for d in one) else one
        for one in shapes
    ]
