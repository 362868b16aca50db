"""The guard in a file of the user's own: its launcher's first statement."""

from __future__ import annotations

import ast

from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.task import Task


def with_guard(source: str, task: Task) -> str:
    """The source with the guard in the launcher, or in ModelNew's forward.

    Raises UsageError where neither is there.
    """
    tree = ast.parse(source)
    function = _guarded(tree, task)
    first = function.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    at = (first.end_lineno or first.lineno) if is_text else first.lineno - 1
    pad = " " * first.col_offset
    names = [argument.arg for argument in function.args.args]
    given = names[: len(task.arguments)]
    is_class = task.launcher == "ModelNew"
    if is_class:
        given = names[1 : 1 + len(task.arguments)]
    asked = ", ".join(["self", *given] if is_class and task.form == "module" else given)
    guard = [
        f"{pad}if reason := _not_proven({asked}):",
        f"{pad}    _say_once(reason)",
        f"{pad}    {_fallback(tree, task, given)}",
    ]
    lines = source.splitlines()
    return "\n".join([*lines[:at], *guard, *lines[at:]]) + "\n"


def reference_call(task: Task) -> str:
    """What stands at the end of the file: the reference under the name that the guard calls."""
    if task.launcher == "ModelNew" and task.form == "module":
        return ""
    if task.form == "function":
        return f"\n\n_reference = {task.entry}\n"
    return (
        "\n\ndef _reference(*arguments):\n"
        f"    return {task.entry}(*get_init_inputs())(*arguments)\n"
    )


def _guarded(tree: ast.Module, task: Task) -> ast.FunctionDef:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == task.launcher:
            return node
        if isinstance(node, ast.ClassDef) and node.name == task.launcher:
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == "forward":
                    return item
    raise UsageError(f"the program has no {task.launcher} to guard; it cannot be exported")


def _fallback(tree: ast.Module, task: Task, given: list[str]) -> str:
    """The statement that runs the reference instead."""
    arguments = ", ".join(given)
    if task.launcher != "ModelNew" or task.form == "function":
        return f"return _reference({arguments})"
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    own, reference = classes["ModelNew"], classes.get(task.entry)
    if any(isinstance(base, ast.Name) and base.id == task.entry for base in own.bases):
        return f"return super().forward({arguments})"
    if reference is not None and _attributes(reference, ast.Load) <= _attributes(own, ast.Store):
        return f"return {task.entry}.forward(self, {arguments})"
    return 'raise NotImplementedError(f"{reason}, and the reference keeps other weights")'


def _attributes(node: ast.ClassDef, context: type[ast.expr_context]) -> set[str]:
    """Attributes of `self` that a class reads in its forward, or sets anywhere."""
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    if context is ast.Load:
        methods = [item for item in methods if item.name == "forward"]
    return {
        part.attr
        for method in methods
        for part in ast.walk(method)
        if isinstance(part, ast.Attribute)
        and isinstance(part.ctx, context)
        and isinstance(part.value, ast.Name)
        and part.value.id == "self"
    }
