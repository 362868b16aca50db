"""Gate parse: the source is Python and defines what a candidate must define."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Outline:
    """What the source says without being run.

    kernels: names of functions decorated with triton.jit.
    """

    kernels: tuple[str, ...]


@dataclass(frozen=True)
class SyntaxProblem:
    """line counts from 1."""

    sentence: str
    line: int


def outline(source: str) -> Outline | SyntaxProblem:
    """Parses a candidate's source; never runs it."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        line = error.lineno or 0
        return SyntaxProblem(f"line {line} is not Python: {error.msg}", line)
    except (ValueError, RecursionError) as error:
        return SyntaxProblem(f"the source cannot be parsed: {error}", 0)
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return Outline(tuple(f.name for f in functions if any(map(_is_jit, f.decorator_list))))


def _is_jit(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(called, ast.Attribute):
        return called.attr == "jit" and ast.unparse(called.value) != "torch"
    return isinstance(called, ast.Name) and called.id == "jit"
