"""Where a rule is applied: the graph around a node, and what the rule makes there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from mtmc_engine.core.graph import Arg, Graph, GraphInput, Node, TensorSpec, refs
from mtmc_engine.schedule.algebra.edit import Edit
from mtmc_engine.schedule.work import Facts, facts_of


@dataclass
class Site:
    """A graph seen from one node, on which a rule may start; it collects the rule's edit.

    made: nodes that take the place of `node`. prepared: computed once, from parameters alone.
    """

    facts: Facts
    node: Node
    made: list[Node] = field(default_factory=list)
    prepared: list[Node] = field(default_factory=list)

    @classmethod
    def of(cls, graph: Graph, node: Node) -> Site:
        """The site of a node of the graph."""
        return cls(facts_of(graph), node)

    @property
    def graph(self) -> Graph:
        return self.facts.graph

    def arg(self, at: int, default: Arg = None, node: Node | None = None) -> Arg:
        """A positional argument of the node, or of another one."""
        args = (node or self.node).args
        return args[at] if len(args) > at else default

    def spec(self, arg: Arg) -> TensorSpec | None:
        """Spec of the tensor that an argument names; None for numbers and sizes."""
        name = _name(arg)
        made = next((n for n in [*self.prepared, *self.made] if n.name == name), None)
        return made.out[0] if made is not None else self.facts.specs.get(name)

    def maker(self, arg: Arg) -> Node | None:
        """The node that makes an argument; None for inputs and numbers."""
        return self.facts.nodes.get(_name(arg))

    def is_fixed(self, arg: Arg) -> bool:
        """Whether an argument is known before any call: a parameter, a buffer, made from such."""
        name = _name(arg)
        if any(node.name == name for node in self.prepared):
            return True
        found = self._input(name)
        return found is not None and (
            found.kind == "prepared"
            or (found.kind in ("parameter", "buffer") and found.target not in self.graph.mutations)
        )

    def _input(self, name: str) -> GraphInput | None:
        return next((value for value in self.graph.inputs if value.name == name), None)

    def only_reader(self, node: Node | None = None) -> Node | None:
        """The one node that reads a node's result, which is no result of the call."""
        name = (node or self.node).name
        users = self.facts.users[name]
        if len(users) != 1 or name in self.facts.results:
            return None
        return self.facts.nodes[users[0]]

    def fresh(self, wanted: str) -> str:
        """A value name that nothing has yet."""
        taken = {*self.facts.specs, *self.facts.nodes}
        taken |= {node.name for node in [*self.graph.prepared, *self.prepared, *self.made]}
        name, count = wanted, 1
        while name in taken:
            count += 1
            name = f"{wanted}_{count}"
        return name

    def derived(
        self, wanted: str, op: str, args: Sequence[Arg], spec: TensorSpec, **kwargs: Arg
    ) -> str:
        """A value made of weights: once where all are known before the call, else in the call."""
        name = self.fresh(wanted)
        node = Node(name, op, tuple(args), kwargs, (spec,), origin=self.origin(self.node))
        fixed = all(self.is_fixed(f"%{read}") for read in refs([*args, *kwargs.values()]))
        (self.prepared if fixed else self.made).append(node)
        return f"%{name}"

    def origin(self, node: Node) -> str:
        """The captured node whose region a node belongs to."""
        return node.origin or node.name

    def put(self, like: Node, op: str, args: Sequence[Arg], name: str = "", at: str = "") -> str:
        """A node with the result of `like`: under its name, or another; `at`: its origin."""
        args = tuple(args)
        while args and args[-1] is None:  # no bias
            args = args[:-1]
        made = replace(like, op=op, args=args, kwargs={}, out=like.out[:1], name=name or like.name)
        self.made.append(replace(made, origin=at or self.origin(self.node)))
        return f"%{made.name}"

    def replaced(self, *gone: Node, **same: str) -> Edit:
        """The edit: what was made stands where the node was, and these nodes are gone."""
        nodes: dict[str, tuple[Node, ...]] = {node.name: () for node in gone}
        return Edit({**nodes, self.node.name: tuple(self.made)}, same, tuple(self.prepared))


def _name(arg: Arg) -> str:
    return arg[1:] if isinstance(arg, str) and arg.startswith("%") else ""


def is_number(arg: Arg) -> bool:
    """Whether an argument is a finite number."""
    return isinstance(arg, int | float) and not isinstance(arg, bool) and math.isfinite(arg)


def dims_of(arg: Arg, rank: int) -> list[int]:
    """Dimensions that an argument names, counted from the front; none where it names no number."""
    listed = list(arg) if isinstance(arg, list | tuple) else [arg]
    if not rank or not all(isinstance(dim, int) for dim in listed):
        return []
    return sorted(dim % rank for dim in listed)
