"""The program of a reply's source: which groups of the schedule it leaves, which are by hand."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from mtmc_engine.coder.top_level import TopLevel, all_by_hand, without_docstrings
from mtmc_engine.core.action import Action
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import ByHand, Group, Library, Program, Schedule
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.legal import apply_action
from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.original import rewritten_schedule
from mtmc_engine.schedule.render import render
from mtmc_engine.schedule.render.module import entry_name

_Node = TypeVar("_Node", bound=ast.AST)


def implemented(task: Task, program: Program, action: Action, source: str) -> Program:
    """The program with `source`, which carries out `action` on `program`.

    The groups are those that the action leads to where it is legal. A group whose kernel and
    launcher are those of `program`, statement by statement, stays as it is; every other group
    with a kernel is by hand. Where the source's entry does not call the launchers as a rendered
    entry would, with the same tensors in the same places, every group is by hand and its source
    is the whole module. A program that the user wrote in Triton is one text: its regions are
    found anew. `source` has to parse.
    """
    if task.program:
        return Program(source, rewritten_schedule(source, program.schedule))
    try:
        schedule = apply_action(task, program.schedule, action)
    except UsageError:
        schedule = program.schedule
    try:
        mapped = _mapped(task, program, schedule, source)
    except (RecursionError, UsageError, Unsupported, SyntaxError):
        mapped = None
    return Program(source, mapped or all_by_hand(schedule, source))


def _mapped(task: Task, program: Program, schedule: Schedule, source: str) -> Schedule | None:
    """The schedule group by group; None where the source cannot be told apart so."""
    entry = entry_name(task)
    before, after = TopLevel.of(program.source), TopLevel.of(source)
    if before.loose != after.loose:
        return None
    launchers = after.launchers(schedule, entry)
    if not launchers and any(not isinstance(g.form, Library) for g in schedule.groups):
        return None
    if len(set(launchers.values())) != len(launchers):
        return None
    earlier = before.launchers(program.schedule, entry)
    changed = before.changed(after)
    kept_imports = before.imports - changed

    def untouched(group: Group, launcher: str) -> bool:
        same_name = earlier.get(group.region) == launcher
        same_group = group in program.schedule.groups
        return same_group and same_name and not after.needs([launcher]) & changed

    groups = []
    for group in schedule.groups:
        name = launchers.get(group.region)
        if name is None or untouched(group, name):
            groups.append(group)
        else:
            text = after.group_text(name, kept_imports)
            groups.append(Group(group.region, group.nodes, ByHand(text)))
    found = replace(schedule, groups=tuple(groups))
    return found if _calls_alike(task, found, after) else None


def _calls_alike(task: Task, schedule: Schedule, after: TopLevel) -> bool:
    """Whether the rendered entry of the schedule computes the same expressions as this one."""
    entry = entry_name(task)
    rendered = TopLevel.of(render(task, schedule))
    ours, theirs = rendered.launchers(schedule, entry), after.launchers(schedule, entry)
    names = {name: region for region, name in ours.items()}
    others = {name: region for region, name in theirs.items()}
    return _results(rendered.named[entry], names) == _results(after.named[entry], others)


def _results(entry: ast.stmt, regions: Mapping[str, str]) -> str:
    """What an entry returns and does besides, local names replaced by what they stand for.

    regions: of the launchers, whose names may differ. A branch or a loop stays as it is.
    """
    lines: list[str] = []
    function = entry
    if isinstance(entry, ast.ClassDef):
        for part in entry.body:
            if isinstance(part, ast.FunctionDef) and part.name == "forward":
                function = part
            elif not _is_text(part):
                lines.append(ast.dump(without_docstrings(part)))
        lines += [ast.dump(base) for base in entry.bases]
    if not isinstance(function, ast.FunctionDef):
        return ast.dump(entry)
    lines.append(", ".join(argument.arg for argument in function.args.args))
    values = _Values(dict(regions))
    for statement in function.body:
        if not _is_text(statement):
            lines += values.read(statement)
    return "\n".join(lines)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _Values(ast.NodeTransformer):
    """Numbers values, so that equal computations get equal names, through whatever locals."""

    def __init__(self, regions: dict[str, str]) -> None:
        self._regions = regions
        self._values: dict[str, str] = {}

    def read(self, node: ast.stmt) -> list[str]:
        """What a statement adds to the results; nothing for an assignment to local names."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], self._numbered(node.value)
            if isinstance(target, ast.Name):
                self._values[target.id] = _number(value)
                return []
            if isinstance(target, ast.Tuple) and all(isinstance(t, ast.Name) for t in target.elts):
                for at, name in enumerate(target.elts):
                    assert isinstance(name, ast.Name)
                    part = ast.Subscript(value, ast.Constant(at), ast.Load())
                    self._values[name.id] = _number(part)
                return []
        return [ast.dump(self._numbered(node))]

    def _numbered(self, node: _Node) -> _Node:
        numbered: _Node = self.visit(copy.deepcopy(node))
        return numbered

    def visit(self, node: ast.AST) -> Any:
        """The node with every expression in it that is read as the name of its number."""
        found: ast.AST = super().visit(node)
        is_read = isinstance(getattr(found, "ctx", ast.Load()), ast.Load)
        if isinstance(found, ast.expr) and is_read and not isinstance(found, ast.Constant):
            return ast.Name(_number(found), ast.Load())
        return found

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._values and isinstance(node.ctx, ast.Load):
            return ast.Name(self._values[node.id], ast.Load())
        if node.id in self._regions:
            return ast.Name(f"launcher of {self._regions[node.id]}", node.ctx)
        return node


def _number(value: ast.expr) -> str:
    if isinstance(value, ast.Name):
        return value.id
    return f"value {hashlib.sha256(ast.dump(value).encode()).hexdigest()}"
