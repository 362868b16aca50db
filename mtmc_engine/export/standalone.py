"""The stand-alone file: the user's reference, the kernels, and a guard between them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.task import Task
from mtmc_engine.export.guard import guard_source

RULE = "# " + "-" * 78


def standalone(task: Task, program_source: str, reference_source: str, heading: str) -> str:
    """One module with everything: it imports neither this tool nor the user's file.

    heading: the module's docstring, without quotes.
    Raises UsageError where the program has no entry point to guard.
    """
    reference, future = _without_future_imports(reference_source)
    program = _without_reference_import(program_source, task)
    guarded = _with_guard(program, task)
    parts = [
        f'"""{heading}\n"""\n',
        *(f"{line}\n" for line in future),
        "import os\nimport warnings\n",
        f"{RULE}\n# The reference, as it was. Calls that were not proven run it.\n",
        reference.strip() + "\n",
        *([f"_reference = {task.entry}\n"] if task.form == "function" else []),
        f"{RULE}\n# When the kernels may run.\n",
        guard_source(task),
        f"{RULE}\n# The kernels.\n",
        guarded.strip() + "\n",
    ]
    return "\n".join(parts)


def sibling_files(task: Task) -> tuple[Path, ...]:
    """Files beside the user's that it imports, directly or through one another."""
    folder = Path(task.file).parent
    found: dict[Path, None] = {}
    waiting = [Path(task.file)]
    while waiting:
        for name in _imported_modules(waiting.pop().read_text()):
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


def _without_future_imports(source: str) -> tuple[str, list[str]]:
    tree = ast.parse(source)
    future = [
        node
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    kept = _without_lines(source, future)
    return kept, [ast.unparse(node) for node in future]


def _without_reference_import(source: str, task: Task) -> str:
    """Drops `from <user's module> import …`; a name it was given there is bound instead."""
    tree = ast.parse(source)
    imports = [
        node
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == task.module
    ]
    aliases = [
        f"{alias.asname} = {alias.name}"
        for node in imports
        for alias in node.names
        if alias.asname and alias.asname != alias.name
    ]
    source = _without_lines(source, imports)
    if isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant):
        source = _without_lines(source, [ast.parse(source).body[0]])
    if not aliases:
        return source
    first = _first_definition(ast.parse(source))
    lines = source.splitlines()
    return "\n".join([*lines[: first - 1], *aliases, "", "", *lines[first - 1 :]]) + "\n"


def _imports_from(tree: ast.Module, module: str) -> list[ast.ImportFrom]:
    return [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == module
    ]


def _first_definition(tree: ast.Module) -> int:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            return min([node.lineno, *(item.lineno for item in node.decorator_list)])
    return 1


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
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    at = (first.end_lineno or first.lineno) if is_docstring else first.lineno - 1
    pad = " " * first.col_offset
    arguments = ", ".join(task.arguments)
    if task.form == "module":
        own, fallback = f"self, {arguments}", f"super().forward({arguments})"
    else:
        own, fallback = arguments, f"_reference({arguments})"
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
