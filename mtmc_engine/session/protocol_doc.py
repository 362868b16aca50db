"""The protocol as a page, made from its schema: `python -m mtmc_engine.session.protocol_doc`."""

from __future__ import annotations

import builtins
import inspect
import types
import typing
from typing import Any, get_args, get_origin

import msgspec

from mtmc_engine.core.events import PROTOCOL_VERSION, AnyCommand, AnyEvent

INTRODUCTION = f"""# The protocol

Version {PROTOCOL_VERSION}. Made from `mtmc_engine/core/events.py`; do not edit it by hand.

`mtmc-tui FILE --json`, or `python -m mtmc_engine run FILE`, writes one JSON object a line on
standard output: an event, named by its field `event`. It reads commands from standard input, one
JSON object a line, named by their field `command`. The last event is `session_finished` or
`failed`. A field that has a default may be left out of a command.

```
$ mtmc-tui softmax.py --json
{{"event": "session_started", "session": "softmax-20261130-1742-ab12", …}}
…
{{"event": "decision_needed", "node": "n1", "step": 1, "choices": ["approve", "reject", …], …}}
{{"command": "decide", "choice": "approve"}}          ← on standard input
```

A decision that names no node answers the next question, so answers may be sent ahead. While a
candidate is being written or proven, `skip` and `stop` end that.
"""


def page() -> str:
    """The whole page."""
    events, commands = get_args(AnyEvent), get_args(AnyCommand)
    parts = _used_by((*events, *commands))
    sections = [
        INTRODUCTION,
        "## Events\n",
        *map(_section, events),
        "## Commands\n",
        *map(_section, commands),
        "## Their parts\n",
        *map(_section, parts),
    ]
    return "\n".join(sections)


def _section(struct: Any) -> str:
    tag = struct.__struct_config__.tag
    title = f"`{tag}`" if tag else f"`{struct.__name__}`"
    text = inspect.cleandoc(_own_doc(struct))
    first, _, details = text.partition("\n\n")
    lines = [f"### {title}", "", first.replace("\n", " ")] if text else [f"### {title}"]
    if details:
        lines += ["", "```", details, "```"]
    return "\n".join([*lines, "", *_table(struct), ""])


def _own_doc(struct: Any) -> str:
    """The docstring that the class itself has; an inherited one says nothing about it."""
    return str(vars(struct).get("__doc__") or "")


def _table(struct: Any) -> list[str]:
    fields = msgspec.structs.fields(struct)
    if not fields:
        return ["No fields."]
    rows = [f"| `{f.encode_name}` | {_type_name(f.type)} | {_default(f)} |" for f in fields]
    return ["| field | type | default |", "|---|---|---|", *rows]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is not msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(field.default).decode()}`"
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(field.default_factory()).decode()}`"
    return ""


SIMPLE = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Any: "any",
}


def _type_name(kind: Any) -> str:
    arguments = get_args(kind)
    match get_origin(kind):
        case typing.Literal:
            return " or ".join(f'"{word}"' for word in arguments)
        case typing.Union | types.UnionType:
            return " or ".join(_type_name(one) for one in arguments)
        case builtins.tuple | builtins.list:
            return f"list of {_type_name(arguments[0])}"
        case builtins.dict:
            return f"object of {_type_name(arguments[1])}"
        case _:
            return SIMPLE.get(kind) or f"`{kind.__name__}`"


def _used_by(structs: tuple[Any, ...]) -> list[Any]:
    """All structs and enumerations that fields of these refer to, in order of first use."""
    found: list[Any] = []
    waiting = [f.type for struct in structs for f in msgspec.structs.fields(struct)]
    while waiting:
        kind = waiting.pop(0)
        if get_args(kind):
            waiting = [one for one in get_args(kind) if not isinstance(one, str)] + waiting
        elif isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in found:
            found.append(kind)
            waiting += [f.type for f in msgspec.structs.fields(kind)]
    return found


if __name__ == "__main__":
    print(page(), end="")
