"""The stand-alone file: the user's reference, the kernels, and a guard between them."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from pathlib import Path

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task
from mtmc_engine.export.guard import guard_source

RULE = "# " + "-" * 78
# An exported file imports these itself: a sibling of that name must not come along.
NEVER_SIBLINGS = {"torch", "triton"}
OWN_IMPORTS = ("import os", "import warnings")


def standalone(task: Task, program: Program, reference_source: str, heading: str) -> str:
    """One module with everything: it imports neither this tool nor the user's file.

    heading: the module's docstring, without quotes.
    Raises UsageError where the program has no entry point to guard.
    """
    reference, reference_imports = _split(reference_source)
    guarded = _with_guard(_without_reference_import(program.source, task), task)
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


def sibling_files(task: Task) -> tuple[Path, ...]:
    """Files beside the user's that it imports, directly or through one another."""
    folder = Path(task.file).parent
    found: dict[Path, None] = {}
    waiting = [Path(task.file)]
    while waiting:
        imported = set(_imported_modules(waiting.pop().read_text())) - NEVER_SIBLINGS
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
    """Each import once: __future__ first, then whole modules, then names from modules."""
    unique = dict.fromkeys([*OWN_IMPORTS, *imports])
    ordered = sorted(unique, key=lambda line: ("__future__" not in line, line.startswith("from")))
    return "\n".join(ordered)


def _section(title: str, body: str) -> str:
    comment = textwrap.fill(title.strip(), 98, initial_indent="# ", subsequent_indent="# ")
    return f"{RULE}\n{comment}\n\n" + body.strip("\n") + "\n"


def _without_reference_import(source: str, task: Task) -> str:
    """Drops `from <user's module> import …`; a name it was given there is bound instead."""
    tree = ast.parse(source)
    found = [
        node
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == task.module
    ]
    aliases = [
        f"{alias.asname} = {alias.name}"
        for node in found
        for alias in node.names
        if alias.asname and alias.asname != alias.name
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
    arguments = ", ".join(task.arguments)
    own, fallback = (
        (f"self, {arguments}", f"super().forward({arguments})")
        if task.form == "module"
        else (arguments, f"_reference({arguments})")
    )
    guard = [
        f"{pad}if reason := _not_proven({own}):",
        f"{pad}    _say_once(reason)",
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
