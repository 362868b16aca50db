"""Data flow within a kernel: where addresses, offsets and masks come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from mtmc_engine.schedule.source.code import dotted, names_in, walk
from mtmc_engine.schedule.source.listing import Binding, Expression, Kernel, Listing

_DESCRIPTORS = ("make_tensor_descriptor", "make_block_ptr", "_experimental_make_tensor_descriptor")
_ADDRESSES = (*_DESCRIPTORS, "advance", "multiple_of", "max_contiguous")
_POINTER_ENDS = ("_ptrs", "_ptr", "_pointers", "_pointer", "_desc", "ptr")


@dataclass(frozen=True, eq=False)
class Flow:
    """One kernel's values."""

    listing: Listing
    kernel: Kernel

    @cached_property
    def bindings(self) -> dict[str, list[Binding]]:
        return self.listing.bindings(self.kernel.node)

    def only(self, name: str) -> Expression | None:
        """The value of a name that is assigned exactly once."""
        found = self.bindings.get(name, ())
        return found[0].value if len(found) == 1 else None

    def label(self, node: cst.CSTNode) -> str:
        """ "loop over k", "load x", "dot": of a region; "" for any other node."""
        match node:
            case cst.For():
                return f"loop over {self.listing.code.of(node.target)}"
            case cst.While():
                return "while loop"
            case cst.Call():
                word = self.listing.word(node)
                if word in ("dot", "dot_scaled"):
                    return "dot"
                if address := self.loaded(node):
                    return f"load {plain(self.base(address) or self.listing.code.of(address))}"
        return ""

    def loaded(self, call: cst.CSTNode) -> Expression | None:
        """The address of tl.load, or the descriptor of its method `load`; None for others."""
        return self._address(call, "load")

    def stored(self, call: cst.CSTNode) -> Expression | None:
        """The address of tl.store, or the descriptor of its method `store`; None for others."""
        return self._address(call, "store")

    def _address(self, call: cst.CSTNode, word: str) -> Expression | None:
        if not isinstance(call, cst.Call):
            return None
        if self.listing.word(call) == word and call.args:
            return argument(call, 0, "pointer")
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == word:
            source = self.only(dotted(call.func.value))
            if source is not None and self.listing.word(source) in _DESCRIPTORS:
                return call.func.value
        return None

    def base(self, address: Expression, seen: frozenset[str] = frozenset()) -> str:
        """The kernel's parameter that an address starts from; "" where that is not seen."""
        match address:
            case cst.Name(value=name):
                return self._named_base(name, seen)
            case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract(), right=right):
                both = [self.base(left, seen), self.base(right, seen)]
                named = [name for name in both if name.lower().endswith(_POINTER_ENDS)]
                return next((name for name in [*named, *both] if name), "")
            case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value="to"))):
                return self.base(value, seen)
            case cst.Call() if self.listing.word(address) in _ADDRESSES:
                first = argument(address, 0, "base")
                return self.base(first, seen) if first is not None else ""
        return ""

    def _named_base(self, name: str, seen: frozenset[str]) -> str:
        parameter = self.kernel.parameter(name)
        if parameter is not None and not parameter.constexpr:
            return name
        if name in seen:
            return ""
        values = (b.value for b in self.bindings.get(name, ()) if b.value is not None)
        found = (self.base(value, seen | {name}) for value in values)
        return next((base for base in found if base), "")

    @cached_property
    def reads(self) -> frozenset[str]:
        """Parameters whose memory the kernel loads from."""
        return self._bases(self.loaded)

    @cached_property
    def writes(self) -> frozenset[str]:
        """Parameters whose memory the kernel stores to; "" stands for one that is not seen."""
        return self._bases(self.stored)

    def _bases(self, address: object) -> frozenset[str]:
        assert callable(address)
        found = (address(node) for node in walk(self.kernel.node))
        return frozenset(self.base(where) for where in found if where is not None)

    @cached_property
    def has_atomics(self) -> bool:
        return any(self.listing.word(node).startswith("atomic") for node in walk(self.kernel.node))

    @cached_property
    def dots(self) -> tuple[cst.Call, ...]:
        return tuple(self.listing.calls(self.kernel.node, "dot", "dot_scaled"))

    @cached_property
    def loops(self) -> tuple[cst.For, ...]:
        return tuple(n for n in walk(self.kernel.node) if isinstance(n, cst.For))

    @cached_property
    def tiles(self) -> tuple[str, ...]:
        """Compile-time parameters that are sizes of blocks: arguments of tl.arange and shapes."""
        found: set[str] = set()
        for call in self.listing.calls(self.kernel.node, "arange", "zeros", "full", *_DESCRIPTORS):
            found |= {n for arg in call.args for n in names_in(arg.value)}
        names = (p.name for p in self.kernel.parameters if p.constexpr)
        ranges = list(self.listing.calls(self.kernel.node, "arange", *_DESCRIPTORS))
        ends = {n for call in ranges for arg in call.args for n in names_in(arg.value)}
        return tuple(name for name in names if name in found and name in ends)

    def resolved(self, expression: Expression, depth: int = 8) -> Expression:
        """What a name stands for where it is read; the expression itself where that is not seen."""
        while depth and isinstance(expression, cst.Name):
            value = self.reaching(expression)
            if value is None:
                break
            expression, depth = value, depth - 1
        return expression

    def reaching(self, use: cst.Name) -> Expression | None:
        """The value that a name has where it is read: its last assignment above, on every path."""
        found = self.bindings.get(use.value, ())
        if len(found) == 1:
            return found[0].value
        code = self.listing.code
        above = [b for b in found if code.end(b.node) <= code.start(use)]
        if not above:
            return None
        last = max(above, key=lambda binding: code.start(binding.node))
        block = code.parents[code.statement(last.node)]
        return last.value if block in code.ancestors(use) else None

    def steps_by(self, loop: cst.For, tile: str) -> bool:
        """Whether a loop covers its range in blocks of `tile`, the last one included."""
        call = loop.iter
        if not isinstance(call, cst.Call):
            return False
        if dotted(call.func) != "range" and self.listing.word(call) not in (
            "range",
            "static_range",
        ):
            return False
        plain_args = [a.value for a in call.args if a.keyword is None]
        if len(plain_args) == 3:
            return dotted(plain_args[2]) == tile
        if not plain_args:
            return False
        count = self.resolved(plain_args[-1])
        divided = ceiling(count)
        return divided is not None and dotted(divided[1]) == tile


def argument(call: cst.Call, position: int, name: str) -> Expression | None:
    """An argument of a call by position or keyword."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    plain_args = [arg for arg in call.args if arg.keyword is None]
    return plain_args[position].value if len(plain_args) > position else None


def ceiling(node: Expression) -> tuple[Expression, Expression] | None:
    """Dividend and divisor of a division that rounds up: cdiv(a, b) or (a + b - 1) // b."""
    if isinstance(node, cst.Call) and dotted(node.func).rpartition(".")[2] == "cdiv":
        values = [arg.value for arg in node.args]
        return (values[0], values[1]) if len(values) == 2 else None
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.FloorDivide):
        top = node.left
        if (
            isinstance(top, cst.BinaryOperation)
            and isinstance(top.operator, cst.Subtract)
            and isinstance(top.right, cst.Integer)
            and top.right.value == "1"
            and isinstance(top.left, cst.BinaryOperation)
            and isinstance(top.left.operator, cst.Add)
            and same(top.left.right, node.right)
        ):
            return top.left.left, node.right
    return None


def same(one: Expression, other: Expression) -> bool:
    """Whether two expressions are written alike, white space aside."""
    return _squeezed(one) == _squeezed(other)


def _squeezed(node: Expression) -> str:
    return "".join(cst.Module([]).code_for_node(node).split())


def plain(name: str) -> str:
    """ "x" for "x_ptr"."""
    for end in _POINTER_ENDS:
        if name.lower().endswith(end) and len(name) > len(end):
            return name[: -len(end)].rstrip("_") or name
    return name
