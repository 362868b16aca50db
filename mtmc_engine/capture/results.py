"""What forward returns, taken apart into plain lists and dicts and what these are in Python."""

from __future__ import annotations

import math
import sys
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.symbols import CannotCapture
from mtmc_engine.core.graph import Arg, Container

_PLAIN = {tuple: "tuple", list: "list", dict: "dict"}


class Outputs:
    """Takes one result apart. containers: those met so far, outermost first."""

    def __init__(self) -> None:
        self.containers: list[Container] = []

    def plain(self, value: Any) -> Arg:
        """Lists and string-keyed dicts of the result's leaves.

        Raises CannotCapture where a class cannot be named or made again from its parts.
        """
        if is_record(value):
            names = [field.name for field in fields(value)]
            return self._listed(value, "fields", names, [getattr(value, name) for name in names])
        if isinstance(value, dict):
            return self._keyed(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._listed(value, "fields", list(value._fields), list(value))
        if isinstance(value, list | tuple):
            return self._listed(value, "items", [], list(value))
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise CannotCapture(f"a result of type {type(value).__name__}")

    def _listed(self, value: Any, made: Any, keys: list[Any], items: list[Any]) -> Arg:
        self.containers.append(Container(_type_name(type(value)), made, tuple(keys)))
        return [self.plain(item) for item in items]

    def _keyed(self, value: dict[Any, Any]) -> Arg:
        if type(value) is dict and all(isinstance(key, str) for key in value):
            self.containers.append(Container("dict", "mapping"))
            return {key: self.plain(item) for key, item in value.items()}
        if any(type(key) not in (str, int, bool) for key in value):
            raise CannotCapture("a dict whose keys are no literals")
        if not _is_made_from_dict(value):
            raise CannotCapture(f"a result of type {type(value).__name__}")
        return self._listed(value, "mapping", list(value), list(value.values()))


def is_record(value: Any) -> bool:
    """Whether a value is a dataclass that its fields make again."""
    return (
        is_dataclass(value)
        and not isinstance(value, type | dict | list | tuple)
        and all(field.init for field in fields(value))
    )


def _is_made_from_dict(value: dict[Any, Any]) -> bool:
    try:
        again = type(value)(dict(value))
    except Exception:  # whatever a user's constructor raises
        return False
    return type(again) is type(value) and list(again.items()) == list(value.items())


def register_records(module: Any) -> None:
    """Lets export and fake runs look into the dataclasses that a module's names are."""
    for value in list(vars(module).values()):
        if not isinstance(value, type) or not is_dataclass(value):
            continue
        known = value in pytree.SUPPORTED_NODES
        if not known and not issubclass(value, dict | list | tuple | torch.nn.Module):
            torch.export.register_dataclass(value)


def _type_name(kind: type) -> str:
    if kind in _PLAIN:
        return _PLAIN[kind]
    module, name = kind.__module__, kind.__qualname__
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not kind:
        raise CannotCapture(f"a result of type {name}, which cannot be named")
    return f"{module}:{name}"
