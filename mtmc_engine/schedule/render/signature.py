"""The call as its author wrote it: parameters, and how they are handed on."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from mtmc_engine.core.graph import Arg
from mtmc_engine.core.task import Parameter, Task

# What generated entries and guards call by name: an argument of such a name has another inside.
NEEDED = frozenset(
    [
        *("torch", "triton", "tl", "super", "getattr", "float", "complex", "int", "max", "min"),
        *("any", "model", "os", "warnings"),
    ]
)
# Stands for a default that is no literal.
OBJECT = "..."
_LEADING = re.compile(r"^\w+")


def parameters_of(task: Task) -> tuple[Parameter, ...]:
    """The call's parameters; where the task does not say, fixed arguments are defaults."""
    if task.parameters:
        return task.parameters
    defaults = {name: literal(value) for name, value in task.fixed.items()}
    return tuple(Parameter(name, default=defaults.get(name)) for name in task.arguments)


def signature_text(task: Task, reference: str = "", names: Mapping[str, str] | None = None) -> str:
    """Source of the parameters, defaults included.

    reference: source of the function that holds defaults which are no literals. names: others
    for some parameters.
    """
    found: list[str] = []
    marked = False
    parameters = parameters_of(task)
    for at, parameter in enumerate(parameters):
        if parameter.kind == "name" and not marked:
            marked = True
            if not any(p.kind == "*" for p in parameters):
                found.append("*")
        name = (names or {}).get(parameter.name, parameter.name)
        star = parameter.kind if parameter.kind in ("*", "**") else ""
        found.append(f"{star}{name}{_default(parameter, parameters, reference)}")
        after = parameters[at + 1].kind if at + 1 < len(parameters) else ""
        if parameter.kind == "/" and after != "/":
            found.append("/")
    return ", ".join(found)


def _default(parameter: Parameter, parameters: tuple[Parameter, ...], reference: str) -> str:
    if parameter.default is None:
        return ""
    if parameter.default != OBJECT:
        return f"={parameter.default}"
    if parameter.kind == "name":
        return f'={reference}.__kwdefaults__["{parameter.name}"]'
    with_default = [p for p in parameters if p.default is not None and p.kind in ("", "/")]
    return f"={reference}.__defaults__[{with_default.index(parameter)}]"


def passed_text(task: Task, names: Mapping[str, str] | None = None) -> str:
    """Source of the arguments that hand the parameters on."""
    found = []
    for parameter in parameters_of(task):
        name = (names or {}).get(parameter.name, parameter.name)
        if parameter.kind in ("*", "**"):
            found.append(f"{parameter.kind}{name}")
        else:
            found.append(f"{parameter.name}={name}" if parameter.kind == "name" else name)
    return ", ".join(found)


def plain_text(task: Task, names: Mapping[str, str] | None = None) -> str:
    """The parameters' names alone, for a function of this tool's own."""
    return ", ".join((names or {}).get(p.name, p.name) for p in parameters_of(task))


def renamed_target(target: str, names: Mapping[str, str]) -> str:
    """Source of an argument or a part of it under other names: "xs[0]"."""
    return _LEADING.sub(lambda found: names.get(found[0], found[0]), target)


def differs(target: str, value: object, literal: str) -> str:
    """Source that is true where a fixed argument has another value than `value`, as source."""
    if value is None or isinstance(value, bool):
        return f"{target} is not {value!r}"
    if value == "nan":
        return f"{target} == {target}"
    return f"{target} != {literal}"


def literal(value: Arg) -> str:
    """Source of a JSON value; torch's constants are names, what JSON lacks is spelled out."""
    if isinstance(value, str):
        if value.startswith(("torch.", "complex(")):
            return value
        return f'float("{value}")' if value in ("inf", "-inf", "nan") else repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(item) for item in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)
