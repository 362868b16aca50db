"""Labels of regions: what a set of operators computes, in the user's words.

Operators are turned into expressions in a normal form (products and sums flattened, numbers
anonymous, divisions as reciprocals), and those are compared with the idioms of the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from mtmc_engine.core.graph import Arg, Graph, Node, node_refs
from mtmc_engine.schedule.classes import GLUE, Sort, sorts_of, word_of
from mtmc_engine.schedule.identity import Same

MAX_WORDS = 3
# Sums and products of more terms are left as they are: no idiom has as many.
_MAX_TERMS = 8

_WORDS = {
    "addmm": "linear",
    "bmm": "matmul",
    "mm": "matmul",
    "mv": "matmul",
    "clone": "copy",
    "contiguous": "copy",
    "_to_copy": "cast",
    "to": "cast",
    "cross_entropy_loss": "cross entropy",
    "scaled_dot_product_attention": "attention",
    "linalg_vector_norm": "norm",
    "amax": "max",
    "amin": "min",
    "convolution": "conv",
}

Pattern = str | tuple["Pattern", ...]

_MEAN_SQUARE: Pattern = ("mean", ("mul", "x", "x"))
_CENTRED: Pattern = ("add", "x", ("mul", "number", ("mean", "x")))
_LAYER_NORM: Pattern = (
    "mul",
    _CENTRED,
    ("rsqrt", ("add", "number", ("mean", ("mul", _CENTRED, _CENTRED)))),
    "*",
)
_LAYER_NORM_VAR: Pattern = ("mul", _CENTRED, ("rsqrt", ("add", "number", ("var", "x"))), "*")
_SHIFTED_EXP: Pattern = ("exp", ("add", "x", ("mul", "number", ("max", "x"))))
_ERF: Pattern = ("erf", ("mul", "number", "x"))
_TANH: Pattern = ("tanh", ("mul", "number", ("add", "x", ("mul", "number", "x", "x", "x"))))
_TANH_FACTORED: Pattern = (
    "tanh",
    ("mul", "number", "x", ("add", "number", ("mul", "number", "x", "x"))),
)
_LOGISTIC: Pattern = ("recip", ("add", "number", ("exp", ("mul", "number", "x"))))

# Larger idioms first. A name binds any expression, the same everywhere; "number" is a constant;
# "*" takes the terms that are left.
_IDIOMS: tuple[tuple[str, Pattern], ...] = (
    ("layer norm", ("add", _LAYER_NORM, "b")),
    ("layer norm", _LAYER_NORM),
    ("layer norm", ("add", _LAYER_NORM_VAR, "b")),
    ("layer norm", _LAYER_NORM_VAR),
    ("rms norm", ("mul", "x", ("rsqrt", ("add", "number", _MEAN_SQUARE)), "*")),
    ("softmax", ("mul", _SHIFTED_EXP, ("recip", ("sum", _SHIFTED_EXP)))),
    ("softmax", ("mul", ("exp", "x"), ("recip", ("sum", ("exp", "x"))))),
    ("logsumexp", ("add", ("max", "x"), ("log", ("sum", _SHIFTED_EXP)))),
    ("logsumexp", ("log", ("sum", ("exp", "x")))),
    ("swiglu", ("mul", ("silu", "x"), "y")),
    ("swiglu", ("mul", "x", ("sigmoid", "x"), "y")),
    ("geglu", ("mul", ("gelu", "x"), "y")),
    ("gelu", ("mul", "number", "x", ("add", "number", _ERF))),
    ("gelu", ("mul", "number", "x", ("add", "number", _TANH))),
    ("gelu", ("mul", "number", "x", ("add", "number", _TANH_FACTORED))),
    ("quick gelu", ("mul", "x", ("sigmoid", ("mul", "number", "x")))),
    ("silu", ("mul", "x", ("sigmoid", "x"))),
    ("silu", ("mul", "x", _LOGISTIC)),
    ("mish", ("mul", "x", ("tanh", ("softplus", "x")))),
    ("squared relu", ("mul", ("relu", "x"), ("relu", "x"))),
)
_WILD = {"*"}


@dataclass(frozen=True)
class Expr:
    """An operator applied to expressions; leaves are "number" and values from outside.

    nodes: graph nodes that were merged into this operator; not part of equality.
    """

    op: str
    args: tuple[Expr, ...] = ()
    nodes: tuple[str, ...] = field(default=(), compare=False)


_NUMBER = Expr("number")


def label_of(graph: Graph, names: Sequence[str]) -> str:
    """What these nodes compute: at most three words joined by "+", "…" for the rest."""
    return _label_of(Same(graph), tuple(names))


@lru_cache(maxsize=4096)
def _label_of(same: Same[Graph], names: tuple[str, ...]) -> str:
    graph = same.value
    sorts = sorts_of(graph)
    inside = set(names)
    nodes = [node for node in graph.nodes if node.name in inside]
    exprs = _expressions(nodes, sorts)
    words: dict[str, str] = {}
    covered: set[str] = set()
    for node in reversed(nodes):
        if node.name in covered or sorts[node.name] in GLUE | {Sort.PART}:
            continue
        word, used = _recognise(exprs[node.name])
        first = next((n.name for n in nodes if n.name in used), node.name)
        words[first if word else node.name] = word or _word(node)
        covered.update(used)
    ordered = list(dict.fromkeys(words[n.name] for n in nodes if n.name in words))
    if len(ordered) > MAX_WORDS:
        ordered = [*ordered[: MAX_WORDS - 1], "…"]
    return "+".join(ordered)


def _word(node: Node) -> str:
    if node.op == "opaque":
        return node.module.rsplit(".", 1)[-1] or "module"
    word = word_of(node)
    if "batch_norm" in word:
        return "batch norm"
    plain = word.strip("_").removeprefix("native_")
    return _WORDS.get(word, plain.replace("_", " "))


def _recognise(expr: Expr) -> tuple[str, set[str]]:
    for name, pattern in _IDIOMS:
        for _, used in _match(pattern, expr, {}):
            return name, set(used)
    return "", set()


def _match(
    pattern: Pattern, expr: Expr, bound: dict[str, Expr]
) -> Iterator[tuple[dict[str, Expr], tuple[str, ...]]]:
    """All ways in which `expr` is an instance: (bindings, nodes of the matched operators)."""
    if isinstance(pattern, str):
        if pattern == "number":
            if expr.op == "number":
                yield bound, ()
        elif pattern not in bound:
            yield {**bound, pattern: expr}, ()
        elif bound[pattern] == expr:
            yield bound, ()
        return
    if expr.op == pattern[0]:
        for names, used in _match_terms(pattern[1:], expr.args, bound):
            yield names, expr.nodes + used


def _match_terms(
    patterns: tuple[Pattern, ...], terms: tuple[Expr, ...], bound: dict[str, Expr]
) -> Iterator[tuple[dict[str, Expr], tuple[str, ...]]]:
    if not patterns:
        if not terms:
            yield bound, ()
        return
    if patterns[0] in _WILD:
        yield bound, ()
        return
    for at, term in enumerate(terms):
        for names, used in _match(patterns[0], term, bound):
            rest = terms[:at] + terms[at + 1 :]
            for all_names, all_used in _match_terms(patterns[1:], rest, names):
                yield all_names, used + all_used


def _expressions(nodes: Iterable[Node], sorts: dict[str, Sort]) -> dict[str, Expr]:
    found: dict[str, Expr] = {}
    for node in nodes:
        found[node.name] = _expression(node, sorts[node.name], found)
    return found


def _expression(node: Node, sort: Sort, found: dict[str, Expr]) -> Expr:
    word = word_of(node)
    operands = [_operand(arg, found) for arg in node.args]
    if (sort is Sort.VIEW or sort is Sort.PART) and operands:
        return operands[0]
    if word in _REWRITES and operands:
        expr = _REWRITES[word](operands, node)
    else:
        plain = {"amax": "max", "reciprocal": "recip", "exp": "exp"}.get(word, word)
        values = tuple(_operand(f"%{name}", found) for name in node_refs(node))
        expr = Expr(plain, values)
    return Expr(expr.op, expr.args, (*expr.nodes, node.name))


def _operand(arg: Arg, found: dict[str, Expr]) -> Expr:
    if isinstance(arg, str) and arg.startswith("%"):
        return found.get(arg[1:]) or Expr(arg)
    return _NUMBER


def _flat(op: str, operands: Iterable[Expr]) -> Expr:
    """A sum or product with nested ones opened and its numbers made one."""
    terms: list[Expr] = []
    nodes: list[str] = []
    for operand in operands:
        if operand.op == op and len(operand.args) + len(terms) <= _MAX_TERMS:
            terms.extend(operand.args)
            nodes.extend(operand.nodes)
        else:
            terms.append(operand)
    others = [term for term in terms if term.op != "number"]
    numbers = [_NUMBER] if len(others) < len(terms) else []
    return Expr(op, (*numbers, *others), tuple(nodes))


def _add(operands: list[Expr], _: Node) -> Expr:
    return _flat("add", operands[:2])


def _sub(operands: list[Expr], _: Node) -> Expr:
    return _flat("add", [operands[0], _negative(operands[1])])


def _mul(operands: list[Expr], _: Node) -> Expr:
    return _flat("mul", operands[:2])


def _div(operands: list[Expr], _: Node) -> Expr:
    return _flat("mul", [operands[0], _reciprocal(operands[1])])


def _neg(operands: list[Expr], _: Node) -> Expr:
    return _negative(operands[0])


def _pow(operands: list[Expr], node: Node) -> Expr:
    exponent = node.args[1] if len(node.args) > 1 else None
    if exponent in (2, 3):
        return _flat("mul", operands[:1] * int(exponent))
    if exponent in (0.5, -0.5):
        return Expr("sqrt" if exponent > 0 else "rsqrt", (operands[0],))
    return Expr("pow", tuple(operands[:2]))


def _square(operands: list[Expr], _: Node) -> Expr:
    return _flat("mul", operands[:1] * 2)


def _negative(expr: Expr) -> Expr:
    return _NUMBER if expr.op == "number" else _flat("mul", [_NUMBER, expr])


def _reciprocal(expr: Expr) -> Expr:
    if expr.op == "number":
        return _NUMBER
    if expr.op == "sqrt":
        return Expr("rsqrt", expr.args, expr.nodes)
    return Expr("recip", (expr,))


_REWRITES = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "pow": _pow,
    "square": _square,
}
