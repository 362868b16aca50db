"""Compositions that have a name: one operator, and a form that cannot overflow."""

from __future__ import annotations

from mtmc_engine.core.graph import Arg, Node
from mtmc_engine.schedule.algebra.edit import Edit
from mtmc_engine.schedule.algebra.rules import rule
from mtmc_engine.schedule.algebra.site import Site, dims_of
from mtmc_engine.schedule.classes import word_of


@rule(
    "log softmax",
    "the logarithm of a softmax is one operator, which keeps small values",
    at=("log",),
)
def log_softmax(site: Site) -> Edit | None:
    """log(softmax(x)) = x - logsumexp(x)."""
    node, made = site.node, site.maker(site.arg(0))
    if node.op != "aten.log.default" or made is None or made.op != "aten.softmax.int":
        return None
    if made.kwargs or len(made.args) > 2 or made.out != node.out:
        return None
    site.put(node, "aten.log_softmax.int", made.args)
    return site.replaced()


@rule(
    "softmax", "exponentials over their sum are a softmax, which subtracts the maximum", at=("div",)
)
def softmax(site: Site) -> Edit | None:
    """exp(x) / sum(exp(x)) along one dimension, whether or not a maximum is subtracted."""
    node = site.node
    top, below = site.maker(site.arg(0)), site.maker(site.arg(1))
    if node.op != "aten.div.Tensor" or top is None or below is None or node.kwargs:
        return None
    rank = len(node.out[0].shape)
    if top.op != "aten.exp.default" or below.op != "aten.sum.dim_IntList" or below.kwargs:
        return None
    dims = dims_of(site.arg(1, None, below), rank)
    if below.args[0] != f"%{top.name}" or len(dims) != 1 or site.arg(2, False, below) is not True:
        return None
    source = site.spec(top.args[0])
    if top.out != node.out or source is None or source.dtype != node.out[0].dtype:
        return None
    site.put(node, "aten.softmax.int", (unshifted(site, top.args[0], dims[0]), dims[0]))
    return site.replaced()


def unshifted(site: Site, arg: Arg, dim: int) -> Arg:
    """x of x - max(x) along the dimension; any other value as it is."""
    made = site.maker(arg)
    if made is None or word_of(made) != "sub" or len(made.args) != 2 or made.kwargs:
        return arg
    source, largest = made.args[0], site.maker(made.args[1])
    if largest is not None and largest.op == "getitem" and largest.args[1] == 0:
        largest = site.maker(largest.args[0])
    if largest is None or word_of(largest) not in {"amax", "max"} or largest.args[0] != source:
        return arg
    spec = site.spec(source)
    if spec is None or len(largest.args) < 3 or largest.args[2] is not True:
        return arg
    rank = len(spec.shape)
    return source if dims_of(largest.args[1], rank) == [dim % rank] else arg


@rule("silu", "it is one operator: x times its own sigmoid", at=("mul", "div"))
def silu(site: Site) -> Edit | None:
    """x * sigmoid(x), and x / (1 + exp(-x))."""
    node = site.node
    if len(node.args) != 2 or node.kwargs:
        return None
    source: Arg = None
    if node.op == "aten.mul.Tensor":
        for x, gate in (node.args, node.args[::-1]):
            made = site.maker(gate)
            if made is not None and made.op == "aten.sigmoid.default" and made.args[0] == x:
                source = x
    elif node.op == "aten.div.Tensor":
        source = node.args[0] if _is_logistic(site, node.args[1], node.args[0]) else None
    if source is None or site.spec(source) != node.out[0]:
        return None
    site.put(node, "aten.silu.default", (source,))
    return site.replaced()


def _is_logistic(site: Site, arg: Arg, x: Arg) -> bool:
    """1 + exp(-x)."""
    added = site.maker(arg)
    if added is None or word_of(added) != "add" or len(added.args) != 2 or added.kwargs:
        return False
    term, one = added.args if added.args[1] == 1 else added.args[::-1]
    grown = site.maker(term)
    if one != 1 or grown is None or grown.op != "aten.exp.default":
        return False
    negative = site.maker(grown.args[0])
    return negative is not None and _negates(negative, x)


def _negates(node: Node, x: Arg) -> bool:
    if node.op == "aten.neg.default":
        return bool(node.args[0] == x)
    return node.op == "aten.mul.Tensor" and tuple(node.args) == (x, -1)
