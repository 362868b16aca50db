"""A program's source by its top-level statements: what each binds, what each needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from mtmc_engine.core.program import ByHand, Group, Library, Schedule

_IMPORTS = (ast.Import, ast.ImportFrom)
_LOOSE = "<statement> "


@dataclass(frozen=True)
class TopLevel:
    """A parsed source: its top-level statements by the names that they bind."""

    source: str
    tree: ast.Module
    named: dict[str, ast.stmt]

    @staticmethod
    def of(source: str) -> TopLevel:
        """Raises SyntaxError where the source is not Python."""
        tree = ast.parse(source)
        named: dict[str, ast.stmt] = {}
        for node in tree.body:
            for name in _bound(node):
                named[name] = node
        return TopLevel(source, tree, named)

    @property
    def imports(self) -> frozenset[str]:
        """Names that import statements bind."""
        return frozenset(n for n, node in self.named.items() if isinstance(node, _IMPORTS))

    @property
    def loose(self) -> frozenset[str]:
        """Statements that bind no name; they act when the module is imported."""
        return frozenset(name for name in self.named if name.startswith(_LOOSE))

    def changed(self, other: TopLevel) -> set[str]:
        """Names whose statement differs, or that only one of the two modules has."""
        return {
            name
            for name in {*self.named, *other.named}
            if name not in self.named
            or name not in other.named
            or not _same(self.named[name], other.named[name])
        }

    def needs(self, names: Iterable[str], without: frozenset[str] = frozenset()) -> set[str]:
        """These names and all top-level names that their statements refer to, in any depth."""
        found: set[str] = set()
        stack = list(names)
        while stack:
            name = stack.pop()
            if name in self.named and name not in found and name not in without:
                found.add(name)
                stack.extend(_names_in(self.named[name]))
        return found

    def group_text(self, launcher: str, left_out: frozenset[str]) -> str:
        """Source of a launcher and of all that it needs, itself last."""
        needed = self.needs([launcher]) - left_out - {launcher}
        lines = self.source.splitlines()
        wanted = {id(self.named[name]): self.named[name] for name in needed}
        nodes = [node for node in self.tree.body if id(node) in wanted]
        nodes.append(self.named[launcher])
        parts = ("\n".join(lines[_first_line(node) - 1 : node.end_lineno]) for node in nodes)
        return "\n\n\n".join(parts) + "\n"

    def launchers(self, schedule: Schedule, entry: str) -> dict[str, str]:
        """The launcher of each group with code: the entry calls one a group, in their order.

        Empty where the entry does not, because it was written by hand.
        """
        groups = [group for group in schedule.groups if not isinstance(group.form, Library)]
        names = self._calls(entry)
        if len(names) != len(groups):
            return {}
        return {group.region: name for group, name in zip(groups, names, strict=True)}

    def _calls(self, entry: str) -> list[str]:
        """Top-level functions that the entry calls, in the order in which the calls end."""
        if entry not in self.named:
            return []
        calls = [
            (node.end_lineno, node.end_col_offset, node.func.id)
            for node in ast.walk(self.named[entry])
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and isinstance(self.named.get(node.func.id), ast.FunctionDef)
        ]
        return [name for *_, name in sorted(calls)]


def all_by_hand(schedule: Schedule, source: str) -> Schedule:
    """Every group with the whole module as its source."""
    groups = (Group(g.region, g.nodes, ByHand(source)) if g.region else g for g in schedule.groups)
    return replace(schedule, groups=tuple(groups))


def _first_line(node: ast.stmt) -> int:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return node.lineno


def _bound(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.split(".")[0] for alias in names]
        case ast.Assign(targets=targets):
            return [t.id for t in targets if isinstance(t, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Expr(value=ast.Constant()):
            return []
        case _:
            return [_LOOSE + ast.unparse(node)]


def _names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _same(one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(without_docstrings(one)) == ast.dump(without_docstrings(other))


def without_docstrings(node: ast.AST) -> ast.AST:
    """A copy without any docstring."""
    copy = ast.parse(ast.unparse(node))
    for part in ast.walk(copy):
        body = getattr(part, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            part.body = body[1:]  # type: ignore[attr-defined]
    return copy


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
