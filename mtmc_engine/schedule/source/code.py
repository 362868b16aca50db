"""A source text with its concrete syntax tree and the place of every node in the text.

Nodes are read from the tree; changes are pieces of text put in their place, so that all else
stays byte for byte, comments and style included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, ParentNodeProvider

from mtmc_engine.core.errors import UsageError


@dataclass(frozen=True)
class Edit:
    """Bytes from `start` to `end` of a source become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class Code:
    """A parsed source. Offsets count bytes of its UTF-8 form."""

    text: str
    data: bytes
    module: cst.Module
    spans: Mapping[cst.CSTNode, Any]
    parents: Mapping[cst.CSTNode, cst.CSTNode]

    def start(self, node: cst.CSTNode) -> int:
        return int(self.spans[node].start)

    def end(self, node: cst.CSTNode) -> int:
        if isinstance(node, cst.Param):  # whose place in the text has the comma in it
            annotation = node.annotation.annotation if node.annotation else None
            return self.end(node.default or annotation or node.name)
        span = self.spans[node]
        return int(span.start) + int(span.length)

    def of(self, node: cst.CSTNode) -> str:
        """The node as it is written, without parentheses around it."""
        return self.data[self.start(node) : self.end(node)].decode()

    def line(self, node: cst.CSTNode) -> int:
        """Its first line, from 1."""
        return self.data.count(b"\n", 0, self.start(node)) + 1

    def line_start(self, node: cst.CSTNode) -> int:
        """Where its first line begins."""
        return self.data.rfind(b"\n", 0, self.start(node)) + 1

    def line_end(self, node: cst.CSTNode) -> int:
        """Where its last line ends, behind the line break and any comment."""
        at = self.data.find(b"\n", self.end(node))
        return len(self.data) if at < 0 else at + 1

    def indent(self, node: cst.CSTNode) -> str:
        """White space before a statement."""
        return self.data[self.line_start(node) : self.start(node)].decode()

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement, with all that belongs to its line, that a node is part of."""
        while not isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            node = self.parents[node]
        return node

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """From the node's parent to the module."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The innermost function that a node is part of."""
        inside = (n for n in self.ancestors(node) if isinstance(n, cst.FunctionDef))
        return next(inside, None)

    def replaced(self, node: cst.CSTNode, text: str) -> Edit:
        return Edit(self.start(node), self.end(node), text)

    def inserted_after(self, statement: cst.CSTNode, lines: Iterable[str]) -> Edit:
        """New lines below a statement, as deep as it is."""
        return self._inserted(self.line_end(statement), statement, lines)

    def inserted_before(self, statement: cst.CSTNode, lines: Iterable[str]) -> Edit:
        """New lines above a statement, as deep as it is."""
        return self._inserted(self.line_start(statement), statement, lines)

    def removed(self, statement: cst.CSTNode) -> Edit:
        """The whole lines of a statement."""
        return Edit(self.line_start(statement), self.line_end(statement), "")

    def _inserted(self, at: int, like: cst.CSTNode, lines: Iterable[str]) -> Edit:
        text = "".join(f"{self.indent(like)}{line}\n" for line in lines)
        missing = at and self.data[at - 1 : at] != b"\n"
        return Edit(at, at, f"\n{text}" if missing else text)


# A form feed is white space, but libcst's places slip at it. One that begins a line also begins
# its indentation anew: the tree is read with a line break there, which is as many bytes.
_FORM_FEED = re.compile(r"(?m)(^)\f|\f")


@lru_cache(maxsize=32)
def code_of(text: str) -> Code:
    """Parses a source. Raises UsageError where it is no Python."""
    try:
        module = cst.parse_module(_FORM_FEED.sub(lambda m: "\n" if m[1] is not None else " ", text))
    except cst.ParserSyntaxError as error:
        raise UsageError(
            f"Line {error.raw_line} of the program is not Python; correct it first."
        ) from error
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    found = wrapper.resolve_many([ByteSpanPositionProvider, ParentNodeProvider])
    spans: Mapping[cst.CSTNode, Any] = found[ByteSpanPositionProvider]
    parents: Mapping[cst.CSTNode, Any] = found[ParentNodeProvider]
    return Code(text, text.encode(), module, spans, parents)


def rewritten(code: Code, edits: Iterable[Edit]) -> str:
    """The source with these changes; all other bytes stay. Insertions at one place keep order.

    Raises ValueError where two of them overlap.
    """
    pieces: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < at:
            raise ValueError(f"two changes meet at byte {edit.start}")
        pieces += [code.data[at : edit.start], edit.text.encode()]
        at = edit.end
    return b"".join([*pieces, code.data[at:]]).decode()


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it, in the order in which they are written."""
    yield node
    for child in node.children:
        yield from walk(child)


def dotted(node: cst.CSTNode | None) -> str:
    """ "tl.load" for a name or a chain of attributes; "" for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr.value}" if base else ""
    return ""


def names_in(node: cst.CSTNode) -> set[str]:
    """Names that an expression reads; those of attributes and keywords do not count."""
    found: set[str] = set()
    stack: list[cst.CSTNode] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, cst.Name):
            found.add(part.value)
        elif isinstance(part, cst.Attribute | cst.Arg):
            stack.append(part.value)
        else:
            stack += part.children
    return found
