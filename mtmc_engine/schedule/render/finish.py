"""What the launcher computes itself from a kernel's vector of partial results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mtmc_engine.schedule.render.expressions import Text, apply, number
from mtmc_engine.schedule.render.launcher import Sizes
from mtmc_engine.schedule.templates.functions import Level
from mtmc_engine.schedule.templates.space import resolved
from mtmc_engine.schedule.templates.tensors import Number, Value
from mtmc_engine.schedule.templates.trace import Output

_FOLDS = {"sum": "sum", "prod": "prod", "max": "amax", "min": "amin"}


def finished_text(output: Output, vectors: Mapping[Value, str], sizes: Sizes) -> str:
    """The torch expression of one output. vectors: name of the vector of each total."""
    text = _text(output.tensor.value, vectors, sizes)
    if output.spec.dtype in ("float16", "bfloat16"):
        text = Text(f"{text.at(Level.ATOM)}.to(torch.{output.spec.dtype})")
    if output.spec.shape:
        text = Text(f"{text.at(Level.ATOM)}.reshape({', '.join('1' for _ in output.spec.shape)})")
    return text.text


def _text(value: Value | Number, vectors: Mapping[Value, str], sizes: Sizes) -> Text:
    if not isinstance(value, Value):
        return number(value)
    if value in vectors:
        return Text(f"{vectors[value]}.{_FOLDS[value.fold]}()")
    if value.kind == "count":
        text = sizes.of(resolved(value.over))
        return Text(text, Level.PRODUCT if " " in text else Level.ATOM)
    if value.kind == "load":
        return Text(sizes.tensors[value.source])
    assert value.function is not None
    function = replace(value.function, text=value.function.text.replace("tl.", "torch."))
    return apply(function, [_text(arg, vectors, sizes) for arg in value.args])
