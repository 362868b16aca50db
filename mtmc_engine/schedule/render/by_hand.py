"""Source written by hand: imports, code, and the launcher that the entry calls.

The launcher is the last top-level function without a decorator. It takes the group's tensors in
order of first use, as a templated launcher does, and returns its outputs, one alone or as a
tuple.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from mtmc_engine.core.errors import UsageError


@dataclass(frozen=True)
class HandWritten:
    """Parts of a group's source. names: all that it binds at the top level."""

    imports: tuple[str, ...]
    code: str
    launcher: str
    names: frozenset[str]


def hand_written(source: str) -> HandWritten:
    """Raises UsageError where the source defines no launcher."""
    tree = ast.parse(source)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    launchers = [node.name for node in functions if not node.decorator_list]
    if not launchers:
        raise UsageError(
            "The edited kernel has no launcher: add a plain function that allocates the output "
            "and launches it."
        )
    skipped = {line for node in imports for line in range(node.lineno, (node.end_lineno or 0) + 1)}
    lines = source.splitlines()
    code = "\n".join(line for at, line in enumerate(lines, start=1) if at not in skipped)
    names = {node.name for node in functions}
    return HandWritten(
        tuple(ast.unparse(node) for node in imports),
        code.strip("\n"),
        launchers[-1],
        frozenset(names),
    )
