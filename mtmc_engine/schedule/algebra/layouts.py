"""Channels last: convolutions and what follows them in the layout that tensor cores read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from msgspec.structs import replace

from mtmc_engine.capture.order import memory_order
from mtmc_engine.core.graph import Arg, Node, TensorSpec, node_refs
from mtmc_engine.schedule.algebra.edit import Edit, renamed
from mtmc_engine.schedule.algebra.rules import rule
from mtmc_engine.schedule.algebra.site import Site
from mtmc_engine.schedule.classes import Sort, word_of

_CONVOLUTIONS = frozenset({"conv2d", "conv_transpose2d"})
_NORM = "_native_batch_norm_legit_no_training"
# Operators that give the layout of their first operand back, beside pointwise ones.
_KEEPING = frozenset({"max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", _NORM})
# Pointwise operators that are told a layout.
_TOLD = frozenset({"clone", "contiguous", "copy", "to", "_to_copy"})
_FORMAT = "torch.channels_last"


def channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The order of an image's dimensions with its channels last; () where that is its own."""
    _, channels, rows, columns = shape
    return memory_order(shape, (rows * columns * channels, 1, columns * channels, channels))


@dataclass
class _Chain:
    """Nodes that are computed in channels last, from one convolution on.

    inner: what each of their results is called there. entries: the same of tensors from outside,
    with the node that converts them. leaving: nodes whose results the rest wants as they were.
    """

    site: Site
    inner: dict[str, str] = field(default_factory=dict)
    entries: dict[str, Node] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)


@rule(
    "channels last",
    "it and what follows are computed with channels last, as tensor cores read them",
    at=_CONVOLUTIONS,
    kind="layout",
)
def images(site: Site) -> Edit | None:
    """A convolution, and the chain of operators after it that keep a layout, in channels last.

    The input is converted once, the weights when the program is built; what leaves the chain
    is converted back, so that results lie in memory as the reference's do.
    """
    if not _converts(site, site.node) or site.node.out[0].order or _follows(site):
        return None
    chain = _Chain(site)
    members = _members(chain)
    for name in members:
        if _leaves(site, name, members):
            chain.leaving.add(name)
            chain.inner[name] = site.fresh(f"{name}_nhwc")
    edits = {node.name: tuple(_converted(chain, node)) for node in members.values()}
    return Edit(edits, {}, tuple(site.prepared))


def _converts(site: Site, node: Node) -> bool:
    """Whether a convolution can run in channels last with weights that are converted once."""
    if word_of(node) not in _CONVOLUTIONS or len(node.out[0].shape) != 4:
        return False
    source, weight = site.spec(node.args[0]), site.spec(node.args[1])
    if source is None or weight is None or not site.is_fixed(node.args[1]):
        return False
    groups_at = 6
    plain = len(node.args) <= groups_at or node.args[groups_at] == 1
    return plain and all(channels_last(spec.shape) for spec in (source, node.out[0]))


def _follows(site: Site) -> bool:
    """Whether the chain of an earlier convolution takes this one in."""
    seen: set[str] = set()
    stack = [site.node.args[0][1:]]
    while stack:
        node = site.facts.nodes.get(stack.pop())
        if node is None or node.name in seen:
            continue
        seen.add(node.name)
        if word_of(node) in _CONVOLUTIONS:
            start = Site(site.facts, node)
            if _converts(start, node) and site.node.name in _members(_Chain(start)):
                return True
        elif node.op == "getitem" or len(node.out[0].shape) == 4:
            stack += node_refs(node)
    return False


def _members(chain: _Chain) -> dict[str, Node]:
    """The nodes of the chain by name, in execution order."""
    members: dict[str, Node] = {}
    started = False
    for node in chain.site.graph.nodes:
        started = started or node.name == chain.site.node.name
        if node.name == chain.site.node.name or (started and _joins(chain, node, members)):
            members[node.name] = node
            chain.inner[node.name] = node.name
            if word_of(node) in _CONVOLUTIONS:
                _enter(chain, node.args[0])
    return members


def _joins(chain: _Chain, node: Node, members: Mapping[str, Node]) -> bool:
    """Whether a node after the chain's beginning keeps the layout of what it reads."""
    first = next(iter(node_refs(node)), "")
    if node.op == "getitem":
        return first in members and word_of(members[first]) == _NORM and node.args[1] == 0
    if not node.out or len(node.out[0].shape) != 4 or not channels_last(node.out[0].shape):
        return False
    word = word_of(node)
    if word in _CONVOLUTIONS | _KEEPING:
        return first in members and (word in _KEEPING or _converts(chain.site, node))
    pointwise = chain.site.facts.sorts[node.name] is Sort.POINTWISE and word not in _TOLD
    return pointwise and _keeps(chain, node, members)


def _keeps(chain: _Chain, node: Node, members: Mapping[str, Node]) -> bool:
    """Whether a pointwise node reads the chain, and nothing else that has a layout."""
    site, read = chain.site, node_refs(node)
    full = [name for name in read if _shape(site, name) == node.out[0].shape]
    known = all(name in members or name in chain.entries for name in full)
    small = all(name in full or _is_vector(_shape(site, name)) for name in read)
    return known and small and any(name in members for name in full)


def _shape(site: Site, name: str) -> tuple[int, ...]:
    spec = site.spec(f"%{name}")
    return spec.shape if spec is not None else ()


def _is_vector(shape: tuple[int, ...]) -> bool:
    """Whether an operand has one dimension that is not repeated: no layout of its own."""
    return sum(size != 1 for size in shape) <= 1


def _leaves(site: Site, name: str, members: Mapping[str, Node]) -> bool:
    """Whether something outside of the chain wants a value as the reference lays it."""
    if name in site.facts.results:
        return True
    readers = [site.facts.nodes[user] for user in site.facts.users[name] if user not in members]
    return any(not _reads_any(site, reader) for reader in readers)


def _reads_any(site: Site, reader: Node) -> bool:
    """Whether a reader gives the same result, laid the same, for every layout: a reduction."""
    sort = site.facts.sorts[reader.name]
    if sort is Sort.SIZE or reader.op == "getitem":
        return True
    narrow = all(sum(size != 1 for size in spec.shape) <= 2 for spec in reader.out)
    return sort is Sort.ROWWISE and narrow


def _enter(chain: _Chain, arg: Arg) -> None:
    """Converts a convolution's input, unless it comes from the chain or lies so already."""
    site, name = chain.site, arg[1:]
    spec = site.spec(arg)
    assert spec is not None
    order = channels_last(spec.shape)
    if name in chain.inner or name in chain.entries or spec.order == order:
        return
    called = site.fresh(f"{name}_nhwc")
    chain.entries[name] = Node(
        called,
        "aten.contiguous.default",
        (arg,),
        {"memory_format": _FORMAT},
        (replace(spec, order=order),),
        origin=site.origin(site.node),
    )


def _converted(chain: _Chain, node: Node) -> list[Node]:
    """What stands in the place of a node of the chain."""
    site = chain.site
    names = {**{name: made.name for name, made in chain.entries.items()}, **chain.inner}
    args = renamed(node.args, names)
    before: list[Node] = []
    if word_of(node) in _CONVOLUTIONS:
        entry = chain.entries.get(node.args[0][1:])
        first = entry is not None and not any(made is entry for made in site.made)
        if entry is not None and first:
            site.made.append(entry)
            before.append(entry)
        args = (args[0], _weight(site, node.args[1]), *args[2:])
    out = tuple(_laid_out(spec) for spec in node.out)
    called = chain.inner[node.name]
    made = replace(node, name=called, args=args, out=out, origin=site.origin(node))
    if node.name not in chain.leaving:
        return [*before, replace(made, origin=node.origin)]
    back = Node(
        node.name,
        "aten.contiguous.default",
        (f"%{called}",),
        {},
        node.out[:1],
        origin=site.origin(node),
    )
    return [*before, made, back]


def _laid_out(spec: TensorSpec) -> TensorSpec:
    if len(spec.shape) != 4 or prod(spec.shape) == 0:
        return spec
    return replace(spec, order=channels_last(spec.shape))


def _weight(site: Site, arg: Arg) -> Arg:
    """The weight in channels last, converted once."""
    spec = site.spec(arg)
    assert spec is not None
    order = channels_last(spec.shape)
    if not order or spec.order == order:
        return arg
    return site.derived(
        f"{arg[1:]}_nhwc",
        "aten.contiguous.default",
        (arg,),
        replace(spec, order=order),
        memory_format=_FORMAT,
    )
