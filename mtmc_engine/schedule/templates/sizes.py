"""Sizes as expressions over the symbols of the varying dimensions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mtmc_engine.core.graph import Arg, Graph, Node
from mtmc_engine.schedule.ops import Unsupported, require
from mtmc_engine.schedule.templates.axes import Axis

_SYMBOL = re.compile(r"\b[su]\d+\b")
_INTEGER = re.compile(r"[\dsu+*/() -]*")
_INFIX = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//"}


class SizeText(str):
    """An integer that the reference computes from sizes, such as "(1 + s3) // 2"."""

    __slots__ = ()


def symbol_values(graph: Graph) -> dict[str, int]:
    """The value of each symbol at the first declared input set."""
    found: dict[str, int] = {}
    for value in graph.inputs:
        for text, size in zip(value.spec.dims, value.spec.shape, strict=False):
            if _SYMBOL.fullmatch(text):
                found.setdefault(text, size)
    return found


def text_of(graph: Graph, node: Node) -> SizeText:
    """The expression of a "sym" node. Raises Unsupported where it is no integer arithmetic."""
    kind, *rest = node.args
    if kind == "size":
        spec = graph.value(str(rest[0]).removeprefix("%"))
        dims = spec.dims or tuple(map(str, spec.shape))
        return SizeText(dims[rest[1]])
    if kind == "neg":
        return SizeText(f"-({_operand(graph, rest[0])})")
    require(kind in _INFIX and len(rest) == 2, "a size that is no integer arithmetic")
    left, right = (_operand(graph, arg) for arg in rest)
    return SizeText(f"({left} {_INFIX[kind]} {right})")


def _operand(graph: Graph, arg: Arg) -> str:
    if isinstance(arg, str) and arg.startswith("%"):
        return text_of(graph, graph.node(arg[1:]))
    require(isinstance(arg, int), "a size that is no integer arithmetic")
    return str(arg)


def value_of(text: str, symbols: Mapping[str, int]) -> int:
    """The number that an expression over symbols stands for."""
    require(_INTEGER.fullmatch(text) is not None, "a size that is no integer arithmetic")
    if not set(_SYMBOL.findall(text)) <= symbols.keys():
        raise Unsupported("a size that no input shows")
    return int(eval(text, {"__builtins__": {}}, dict(symbols)))


def axis_of(text: str, symbols: Mapping[str, int], shown: Mapping[str, Axis]) -> Axis:
    """An axis of that size. shown: the axes of the group's tensors by their symbols."""
    size = value_of(text, symbols)
    if text.isdigit():
        return Axis(size, literal=True)
    names = sorted(set(_SYMBOL.findall(text)))
    if not set(names) <= shown.keys():
        raise Unsupported("a size that no tensor of the group shows")
    formula = _SYMBOL.sub(lambda match: f"{{{names.index(match.group())}}}", text)
    formula = formula.replace(" + (-1)*", " - ")
    return Axis(size, formula=formula, of=tuple((shown[name],) for name in names))
