"""Sizes that belong together although nothing in an exported graph makes them.

PyTorch takes a size of one for any other, and some of its kernels check less than they should, so
that an export leaves sizes free which only one relation makes sense of: the columns of a table
that half a row is multiplied by, the lengths of keys and values. Cases that break the relation
would ask a candidate for what no user calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from mtmc_engine.core.graph import Arg, Graph, Node, TensorSpec, refs

_SYMBOL = re.compile(r"\bs\d+\b")
_BROADCASTING = re.compile(
    r"aten\.(add|sub|rsub|mul|div|pow|maximum|minimum|where|lerp|addcmul|addcdiv|atan2|hypot|fmod"
    r"|remainder|masked_fill|eq|ne|lt|le|gt|ge|logaddexp|logaddexp2|xlogy|bitwise_\w+|logical_\w+)"
    r"\.\w+"
)
_ATTENTION = "aten.scaled_dot_product_attention.default"


def ties(graph: Graph) -> dict[str, str]:
    """Symbols that stand for an expression of others, such as {"s3": "(s2 // 2)"}."""
    found: dict[str, str] = {}
    for one, other in (pair for node in graph.nodes for pair in _pairs(graph, node)):
        left, right = tied(one, found), tied(other, found)
        for symbol, expression in ((left, right), (right, left)):
            if _SYMBOL.fullmatch(symbol) and symbol not in _SYMBOL.findall(expression):
                found = {name: tied(text, {symbol: expression}) for name, text in found.items()}
                found[symbol] = expression
                break
    return found


def tied(expression: str, known: dict[str, str]) -> str:
    """The expression with tied symbols replaced."""

    def replaced(match: re.Match[str]) -> str:
        text = known.get(match.group(), match.group())
        plain = text.isalnum() or match.group() == expression
        return text if plain else f"({text})"

    return _SYMBOL.sub(replaced, expression)


def _pairs(graph: Graph, node: Node) -> Iterator[tuple[str, str]]:
    """Sizes that a node needs alike, where its operands have them alike but called otherwise."""
    tensors = [_spec(graph, arg) for arg in node.args]
    if node.op == _ATTENTION and len(tensors) >= 3:
        _, key, value, *_ = tensors
        if key is not None and value is not None:
            yield from _alike(key, value, (-2,))
    if _BROADCASTING.fullmatch(node.op):
        specs = [spec for spec in tensors if spec is not None]
        for one, other in pairwise(specs):
            common = min(len(one.shape), len(other.shape))
            yield from _alike(one, other, tuple(range(-common, 0)))


def _alike(
    one: TensorSpec, other: TensorSpec, places: tuple[int, ...]
) -> Iterator[tuple[str, str]]:
    if len(one.dims) != len(one.shape) or len(other.dims) != len(other.shape):
        return
    for place in places:
        same = one.shape[place] == other.shape[place] > 1
        if same and one.dims[place] != other.dims[place]:
            yield one.dims[place], other.dims[place]


def _spec(graph: Graph, arg: Arg) -> TensorSpec | None:
    """Of a value that the argument names."""
    names = refs(arg) if isinstance(arg, str) else []
    try:
        return graph.value(names[0]) if names else None
    except (KeyError, IndexError):  # arithmetic over sizes has no spec
        return None
