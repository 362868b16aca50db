"""The stand-alone file: the user's reference, the kernels, and a guard between them."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from mtmc_engine.capture.source import source_text
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task
from mtmc_engine.export.guard import guard_source
from mtmc_engine.export.own_guard import reference_call, with_guard
from mtmc_engine.schedule.render.signature import passed_text, plain_text

RULE = "# " + "-" * 78
# An exported file imports these itself: a sibling of that name must not come along.
NEVER_SIBLINGS = {"torch", "triton"}
OWN_IMPORTS = ("import os", "import warnings")


def standalone(task: Task, program: Program, reference_source: str, heading: str) -> str:
    """One module with everything: it imports neither this tool nor the user's file.

    heading: the module's docstring, without quotes.
    Raises UsageError where the program has no entry point to guard.
    """
    if task.program:
        return own_program(task, program, heading)
    reference, reference_imports = _split(reference_source)
    unguarded = _without_own_fallback(program.source, task)
    guarded = _with_guard(_without_reference_import(unguarded, task), task)
    kernels, kernel_imports = _split(guarded)
    if task.form == "function":
        reference += f"\n\n_reference = {task.entry}\n"
    about = ast.get_docstring(ast.parse(reference_source)) or ""
    sections = [
        f'"""{heading}\n"""\n\n' + _import_block([*reference_imports, *kernel_imports]),
        _section(f"The reference, as it was. {about.splitlines()[0] if about else ''}", reference),
        _section(
            "Which calls the kernels serve. The others run the reference.",
            guard_source(task, program.schedule),
        ),
        _section("The kernels.", kernels),
    ]
    return "\n\n".join(sections)


def own_program(task: Task, program: Program, heading: str) -> str:
    """The user's Triton file as the steps left it, with the guard in its launcher."""
    guarded = with_guard(program.source, task)
    body, imports = _split(guarded)
    before: list[str] = []
    if task.reference:
        reference, more = _split(Path(task.reference).read_text(encoding="utf-8"))
        imports = [*more, *imports]
        before = [_section("The reference, as it was.", reference)]
    about = ast.get_docstring(ast.parse(program.source)) or ""
    sections = [
        f'"""{heading}\n"""\n\n' + _import_block(imports),
        *before,
        _section(
            "Which calls the kernels serve. The others run the reference.",
            guard_source(task, program.schedule),
        ),
        _section(about.splitlines()[0] if about else "The kernels.", body + reference_call(task)),
    ]
    return "\n\n".join(sections)


def sibling_files(task: Task) -> tuple[Path, ...]:
    """Files beside the user's that it imports, directly or through one another."""
    folder = Path(task.file).parent
    found: dict[Path, None] = {}
    waiting = [Path(task.file)]
    while waiting:
        imported = set(_imported_modules(source_text(waiting.pop()))) - NEVER_SIBLINGS
        for name in sorted(imported):
            for path in (folder / f"{name}.py", folder / name / "__init__.py"):
                if path.is_file() and path != Path(task.file) and path not in found:
                    found[path] = None
                    waiting.append(path)
    return tuple(found)


def _imported_modules(source: str) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.append(node.module.split(".")[0])
    return names


def _split(source: str) -> tuple[str, list[str]]:
    """A module's text without its docstring and leading imports, and those imports.

    Only imports before the first other statement move: a later one may depend on it.
    """
    taken: list[ast.stmt] = []
    imports: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(ast.unparse(node))
        elif not (not imports and _is_text(node)):
            break
        taken.append(node)
    return _without_lines(source, taken), imports


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _import_block(imports: Sequence[str]) -> str:
    """Each import once: __future__ first, then the standard library, then the others."""
    unique = dict.fromkeys([*OWN_IMPORTS, *imports])
    groups: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for line in unique:
        package = line.split()[1].split(".")[0].rstrip(",")
        at = 0 if package == "__future__" else 1 if package in sys.stdlib_module_names else 2
        groups[at].append(line)
    blocks = [
        sorted(lines, key=lambda line: (line.startswith("from"), line)) for lines in groups.values()
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _section(title: str, body: str) -> str:
    comment = textwrap.fill(title.strip(), 98, initial_indent="# ", subsequent_indent="# ")
    return f"{RULE}\n{comment}\n\n" + body.strip("\n") + "\n"


def _without_own_fallback(source: str, task: Task) -> str:
    """Drops the entry's own `if eps != 1e-06: return <reference>(…)`: the guard asks the same."""
    tree = ast.parse(source)
    imports = _reference_imports(tree, task)
    names = {name.partition("[")[0] for name in task.fixed} | {"float", "complex", "torch"}
    calls = {"super().forward", *(a.asname or a.name for node in imports for a in node.names)}
    drop = [
        node
        for node in _entry_function(tree, task).body
        if isinstance(node, ast.If)
        and isinstance(last := node.body[0], ast.Return)
        and isinstance(last.value, ast.Call)
        and ast.unparse(last.value.func) in calls
        and {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)} <= names
    ]
    return _without_lines(source, drop)


def _reference_imports(tree: ast.Module, task: Task) -> list[ast.ImportFrom]:
    return [
        node
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == task.module
    ]


def _without_reference_import(source: str, task: Task) -> str:
    """Drops `from <user's module> import …`; a name given there and used is bound instead."""
    tree = ast.parse(source)
    found = _reference_imports(tree, task)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    aliases = [
        f"{alias.asname} = {alias.name}"
        for node in found
        for alias in node.names
        if alias.asname and alias.asname != alias.name and alias.asname in used
    ]
    if not aliases:
        return _without_lines(source, found)
    lines = source.splitlines()
    first, last = found[0].lineno, found[-1].end_lineno or found[-1].lineno
    return "\n".join([*lines[: first - 1], *aliases, *lines[last:]]) + "\n"


def _without_lines(source: str, nodes: Sequence[ast.stmt]) -> str:
    drop = {
        line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    kept = [text for number, text in enumerate(source.splitlines(), 1) if number not in drop]
    return "\n".join(kept).strip("\n") + "\n"


def _with_guard(source: str, task: Task) -> str:
    """Inserts the guard as the first statement of the entry point."""
    entry = _entry_function(ast.parse(source), task)
    first = entry.body[0]
    at = (first.end_lineno or first.lineno) if _is_text(first) else first.lineno - 1
    pad = " " * first.col_offset
    arguments, passed = plain_text(task), passed_text(task)
    own, fallback = (
        (f"self, {arguments}", f"super().forward({passed})")
        if task.form == "module"
        else (arguments, f"_reference({passed})")
    )
    guard = [
        f"{pad}if _reason := _not_proven({own}):",
        f"{pad}    _say_once(_reason)",
        f"{pad}    return {fallback}",
    ]
    lines = source.splitlines()
    return "\n".join([*lines[:at], *guard, *lines[at:]]) + "\n"


def _entry_function(tree: ast.Module, task: Task) -> ast.FunctionDef:
    if task.form == "function":
        candidates: list[ast.stmt] = list(tree.body)
        wanted = task.entry
    else:
        classes = [
            node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ModelNew"
        ]
        candidates = [item for node in classes for item in node.body]
        wanted = "forward"
    for node in candidates:
        if isinstance(node, ast.FunctionDef) and node.name == wanted:
            return node
    raise UsageError(f"the program has no {wanted} to guard; it cannot be exported")
