"""What a user's edit of the source means for the schedule: which groups are now by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import ByHand, Group, Library, Program, Schedule
from mtmc_engine.core.task import Task

_IMPORTS = (ast.Import, ast.ImportFrom)
_LOOSE = "<statement> "


def edited(task: Task, program: Program, source: str) -> Program:
    """The program after the user saved `source`, which it holds exactly.

    Groups whose kernel or launcher changed become by hand, with what these functions need of
    imports and helpers; the others stay as they are. Where the call itself changed (forward,
    or the function of the reference's name), every group is by hand and its source is the whole
    module. Raises UsageError for a syntax error, with its line.
    """
    before, after = _module(program.source), _module(source)
    entry = "ModelNew" if task.form == "module" else task.entry
    changed = before.changed(after) & {entry, *after.needs([entry]), *after.loose, *before.loose}
    if not changed:
        return Program(source, program.schedule)
    launchers = _launchers(before, program.schedule, entry)
    touched = {region for region, name in launchers.items() if after.needs([name]) & changed}
    reached = after.needs(launchers[region] for region in touched)
    direct = after.needs([entry], without=frozenset(launchers.values()))
    if direct & changed or not changed <= reached:
        return Program(source, _all_by_hand(program.schedule, source))
    kept_imports = before.imports - changed
    groups = [
        Group(g.region, g.nodes, ByHand(after.group_text(launchers[g.region], kept_imports)))
        if g.region in touched
        else g
        for g in program.schedule.groups
    ]
    return Program(source, Schedule(tuple(groups)))


@dataclass(frozen=True)
class _Module:
    """A parsed source: its top-level statements by the names that they bind."""

    source: str
    tree: ast.Module
    named: dict[str, ast.stmt]

    @property
    def imports(self) -> frozenset[str]:
        """Names that import statements bind."""
        return frozenset(n for n, node in self.named.items() if isinstance(node, _IMPORTS))

    @property
    def loose(self) -> frozenset[str]:
        """Statements that bind no name; they act when the module is imported."""
        return frozenset(name for name in self.named if name.startswith(_LOOSE))

    def changed(self, other: _Module) -> set[str]:
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


def _first_line(node: ast.stmt) -> int:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return node.lineno


def _module(source: str) -> _Module:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise UsageError(
            f"The edited program has a syntax error in line {error.lineno}: {error.msg}; "
            "correct it and save again."
        ) from error
    named: dict[str, ast.stmt] = {}
    for node in tree.body:
        for name in _bound(node):
            named[name] = node
    return _Module(source, tree, named)


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
    return ast.dump(_without_docstrings(one)) == ast.dump(_without_docstrings(other))


def _without_docstrings(node: ast.AST) -> ast.AST:
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


def _launchers(module: _Module, schedule: Schedule, entry: str) -> dict[str, str]:
    """The launcher of each group with code: the entry calls one a group, in their order.

    Empty where the entry does not, because it was written by hand.
    """
    groups = [group for group in schedule.groups if not isinstance(group.form, Library)]
    names = _calls(module, entry)
    if len(names) != len(groups):
        return {}
    return {group.region: name for group, name in zip(groups, names, strict=True)}


def _calls(module: _Module, entry: str) -> list[str]:
    """Top-level functions that the entry calls, in the order in which the calls end."""
    if entry not in module.named:
        return []
    calls = [
        (node.end_lineno, node.end_col_offset, node.func.id)
        for node in ast.walk(module.named[entry])
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and isinstance(module.named.get(node.func.id), ast.FunctionDef)
    ]
    return [name for *_, name in sorted(calls)]


def _all_by_hand(schedule: Schedule, source: str) -> Schedule:
    return Schedule(
        tuple(Group(g.region, g.nodes, ByHand(source)) if g.region else g for g in schedule.groups)
    )
