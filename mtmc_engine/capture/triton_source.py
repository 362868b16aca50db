"""Files that hold Triton kernels: which function launches them, and which one they implement."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from mtmc_engine.core.errors import UsageError

HOOKS = ("get_inputs", "get_init_inputs", "inputs")
# Functions that use a launcher without being one.
_USERS = ("test", "bench", "main")


@dataclass(frozen=True)
class TritonSource:
    """The top-level definitions of a file with kernels.

    kernels: names of functions under triton.jit. launching: functions and classes that launch
    one, directly or through another definition. launchers: those of them that nobody else calls.
    """

    file: str
    kernels: tuple[str, ...]
    launching: frozenset[str]
    launchers: tuple[str, ...]
    defined: frozenset[str]

    def launcher(self, named: str) -> str:
        """The definition that is judged. named: TASK's word for it, "" for none.

        Raises UsageError where there are several.
        """
        if named:
            if named not in self.launching:
                raise UsageError(
                    f"TASK in {self.file} names the launcher {named}, which launches no kernel; "
                    f"those that do: {', '.join(sorted(self.launching))}."
                )
            return named
        if "ModelNew" in self.launching:
            return "ModelNew"
        if len(self.launchers) != 1:
            listed = ", ".join(self.launchers or sorted(self.launching))
            raise UsageError(
                f"{self.file} has several launchers ({listed}); "
                "name the one to optimise in TASK = {'launcher': ...}."
            )
        return self.launchers[0]

    def reference(self, launcher: str, functions: Iterable[str]) -> str:
        """The definition that says what `launcher` should compute.

        functions: names that count, of this file or of another. Raises UsageError where none or
        several are found by convention.
        """
        looked_for = conventions(launcher)
        found = [n for n in looked_for if n in functions and n not in self.launching]
        if len(found) == 1 or found[:1] == ["Model"]:
            return found[0]
        if found:
            raise UsageError(
                f"{self.file} has several references for {launcher} ({', '.join(found)}); "
                f"choose one with --reference {found[0]}."
            )
        raise UsageError(
            f"{self.file} has Triton kernels but no reference to compare them with: looked for "
            f"class Model and a function named {', '.join(looked_for[1:-1])} or {looked_for[-1]}; "
            "name it with --reference NAME or --reference FILE:NAME."
        )


def conventions(launcher: str) -> tuple[str, ...]:
    """Names that a reference goes by, `Model` first."""
    if launcher == "ModelNew":
        return ("Model", "reference")
    return (
        "Model",
        "reference",
        f"{launcher}_reference",
        f"reference_{launcher}",
        f"{launcher}_ref",
        f"ref_{launcher}",
        f"torch_{launcher}",
    )


def triton_source(tree: ast.Module, file: str) -> TritonSource | None:
    """What a file with kernels defines; None where it launches none of its own.

    None, too, where `Model` itself launches and nothing stands beside it: that is a reference.
    """
    kernels = tuple(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and is_kernel(n))
    if not kernels:
        return None
    definitions = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name not in kernels
    }
    uses = {name: _names_in(node) - {name} for name, node in definitions.items()}
    launching = {n for n, node in definitions.items() if _launches(node, kernels)}
    while more := {n for n, used in uses.items() if used & launching} - launching:
        launching |= more
    called = {name for user, used in uses.items() if not _is_user(user) for name in used}
    launchers = tuple(
        name
        for name in definitions
        if name in launching
        and name not in called
        and name not in HOOKS
        and not name.startswith("_")
        and not _is_user(name)
        and isinstance(definitions[name], ast.FunctionDef)
    )
    if not launching or ("Model" in launching and "ModelNew" not in launching):
        return None
    return TritonSource(file, kernels, frozenset(launching), launchers, frozenset(definitions))


def is_kernel(node: ast.FunctionDef) -> bool:
    """Whether a function is under triton.jit."""
    return any(map(_is_jit, node.decorator_list))


def _is_jit(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(called, ast.Attribute):
        return called.attr == "jit" and ast.unparse(called.value) != "torch"
    return isinstance(called, ast.Name) and called.id == "jit"


def _launches(node: ast.AST, kernels: tuple[str, ...]) -> bool:
    """Whether it holds a call `kernel[grid](...)`."""
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Subscript)
        and isinstance(part.func.value, ast.Name)
        and part.func.value.id in kernels
        for part in ast.walk(node)
    )


def _names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _is_user(name: str) -> bool:
    return name.startswith(_USERS)
