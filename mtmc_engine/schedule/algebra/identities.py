"""Operators that change nothing, repeat others, or meet another one half-way."""

from __future__ import annotations

from mtmc_engine.core.graph import Arg, Node
from mtmc_engine.schedule.algebra.edit import Edit
from mtmc_engine.schedule.algebra.rules import rule
from mtmc_engine.schedule.algebra.site import Site, dims_of, is_number
from mtmc_engine.schedule.classes import Sort, word_of

# word -> the number that leaves every x as it is. x + 0 is not among them: it loses the sign of
# a zero.
_NEUTRAL = {"mul": 1, "div": 1, "sub": 0, "pow": 1}
# Reductions that give the only element of a row of one.
_OF_ONE = ("sum", "mean", "amax", "amin", "prod", "logsumexp", "max", "min")
_VIEWS = ("view", "reshape", "_unsafe_view", "t", "transpose", "permute")


@rule("neutral", "an operator that changes nothing is left out", at=_NEUTRAL)
def neutral(site: Site) -> Edit | None:
    """x * 1, x / 1, x - 0 and x ** 1 are x."""
    node = site.node
    if len(node.args) != 2 or node.kwargs or not is_number(node.args[1]):
        return None
    if node.args[1] != _NEUTRAL[word_of(node)]:
        return None
    return _instead(site, node.args[0])


@rule("rows of one", "reductions along a dimension of size one are left out", at=_OF_ONE)
def rows_of_one(site: Site) -> Edit | None:
    """A sum, mean, maximum or logsumexp over one element is that element."""
    node, source = site.node, site.arg(0)
    spec = site.spec(source)
    result = _first_result(site)
    if spec is None or result is None or node.kwargs:
        return None
    dims = dims_of(site.arg(1), len(spec.shape))
    if not dims or spec.dtype != result.out[0].dtype:
        return None
    if any(spec.shape[dim] != 1 or spec.dims[dim : dim + 1] not in {(), ("1",)} for dim in dims):
        return None
    if site.arg(2, False):
        return _instead(site, source, result)
    if len(dims) != 1:
        return None
    site.put(result, "aten.squeeze.dim", (source, dims[0]), result.name)
    return site.replaced(*([result] if result is not node else []))


def _first_result(site: Site) -> Node | None:
    """The node itself; of a maximum with its place the value, where nothing else is read."""
    if len(site.node.out) == 1:
        return site.node
    part = site.only_reader()
    return part if part is not None and part.op == "getitem" and part.args[1] == 0 else None


@rule("repeated", "what was computed already is not computed again")
def repeated(site: Site) -> Edit | None:
    """A node that repeats an earlier one with the same operands."""
    node = site.node
    if site.facts.sorts[node.name] in {Sort.OTHER, Sort.SIZE, Sort.VIEW, Sort.PART, Sort.FACTORY}:
        return None
    if node.name in site.facts.results or len(node.out) != 1:
        return None
    read = next(iter(site.facts.reads[node.name]), "")
    for name in site.facts.users.get(read, ()):
        other = site.facts.nodes[name]
        if name == node.name:
            return None
        if (other.op, other.args, other.kwargs, other.out) == (
            node.op,
            node.args,
            node.kwargs,
            node.out,
        ):
            return site.replaced(**{node.name: other.name})
    return None


@rule("constants", "two factors or two terms in a row are one", at=("mul", "div", "add", "sub"))
def constants(site: Site) -> Edit | None:
    """(x * a) * b = x * (a * b), (x + a) + b = x + (a + b): for floating-point x."""
    node, reader = site.node, site.only_reader()
    if reader is None or not node.out[0].dtype.startswith(("float", "bfloat")):
        return None
    first, second = _step(node), _step(reader)
    if first is None or second is None or first[0] != second[0]:
        return None
    if reader.out[0] != node.out[0] or reader.args[0] != f"%{node.name}":
        return None
    kind, one = first
    both = one * second[1] if kind == "mul" else one + second[1]
    if not is_number(both) or (kind == "mul" and not 1e-30 < abs(both) < 1e30):
        return None
    site.put(reader, f"aten.{kind}.Tensor", (node.args[0], both), reader.name)
    return site.replaced(reader)


def _step(node: Node) -> tuple[str, float] | None:
    """A product with a number, or a sum with one."""
    if len(node.args) != 2 or node.kwargs or not is_number(node.args[1]):
        return None
    number = float(node.args[1])
    match word_of(node):
        case "mul":
            return "mul", number
        case "div" if number:
            return "mul", 1.0 / number
        case "add":
            return "add", number
        case "sub":
            return "add", -number
    return None


@rule("views", "views that undo one another are left out", at=_VIEWS)
def views(site: Site) -> Edit | None:
    """A transposition of a transposition, a reshape of a reshape."""
    node = site.node
    before = site.maker(site.arg(0))
    if before is None or before.op != node.op or node.name in site.facts.results:
        return None
    word, source = word_of(node), before.args[0]
    if word in {"view", "reshape", "_unsafe_view"} and site.spec(source) == node.out[0]:
        return _instead(site, source)
    back = word == "t" or (word == "transpose" and _pair(node) == _pair(before))
    if word == "permute":
        order = [before.args[1][dim] for dim in node.args[1]]
        back = [dim % len(order) for dim in order] == list(range(len(order)))
    return _instead(site, source) if back else None


def _pair(node: Node) -> list[int]:
    return dims_of([node.args[1], node.args[2]], len(node.out[0].shape))


def _is_own(site: Site, source: Arg) -> bool:
    """Whether a value has memory of its own that is not returned already."""
    maker = site.maker(source)
    if maker is None or maker.name in site.facts.results:
        return False
    return site.facts.sorts[maker.name] is not Sort.VIEW


def _instead(site: Site, source: Arg, result: Node | None = None) -> Edit | None:
    """The source in the place of a result that equals it, unless the caller may tell them apart."""
    made = result or site.node
    if site.spec(source) != made.out[0]:
        return None
    if made.name in site.facts.results and not _is_own(site, source):
        return None
    gone = [made] if made is not site.node else []
    return site.replaced(*gone, **{made.name: source[1:]})
