"""The user's file as text and syntax tree, before any of it runs."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

from mtmc_engine.core.errors import UsageError


@dataclass(frozen=True)
class Source:
    """A readable Python file: absolute path, text and syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def digest(self) -> str:
        """SHA-256 of the text, hexadecimal."""
        return text_digest(self.text)

    def definition(self, name: str) -> int:
        """Line of the top-level function or class `name`, 0 where there is none."""
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                return node.lineno
        return 0


def read_source(file: str) -> Source:
    """Reads and parses `file`. Raises UsageError in one sentence for whatever is wrong with it."""
    path = named_file(file, "the Python file").resolve()
    if path.suffix != ".py":
        raise UsageError(f"{path.name} is not a Python file; its name must end in .py.")
    text = source_text(path)
    if "\0" in text:
        raise UsageError(f"{path.name} is not Python text (it has null bytes).")
    try:
        tree = ast.parse(text, filename=str(path))
    except SyntaxError as error:
        place = f"{path.name}:{error.lineno}"
        raise UsageError(f"{place}: syntax error, {error.msg}; correct it first.") from error
    return Source(path, text, tree)


def text_digest(text: str) -> str:
    """SHA-256 of a file's text, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def source_text(path: Path) -> str:
    """The text of a Python file, in UTF-8 or in the coding that its first lines declare.

    Raises UsageError where it cannot be read or is no such text.
    """
    try:
        return importlib.util.decode_source(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path.name} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        wanted = error.encoding.upper()
        raise UsageError(f"{path.name} is not Python text (not {wanted}).") from error
    except SyntaxError as error:
        raise UsageError(f"{path.name} is not Python text ({error.msg}).") from error


def named_file(given: str, what: str) -> Path:
    """The path of a file that can be read to its end. what: the file that is wanted.

    Raises UsageError for an empty name, a directory, and a pipe or device, which may have no end.
    """
    if not given.strip():
        raise UsageError(f"The name of a file is empty; name {what}.")
    path = Path(given).expanduser().absolute()
    if path.is_dir():
        raise UsageError(f"{given} is a directory; name {what} in it.")
    if not path.exists():
        raise UsageError(f"There is no file {given}; check the path.")
    if not path.is_file():
        raise UsageError(f"{given} is a pipe or a device; name {what} itself.")
    return path


def module_name(path: str | Path) -> str:
    """The name that programs import the user's file by.

    The stem, made an identifier; "reference_<stem>" where it would hide an importable module.
    """
    path = Path(path).resolve()
    stem = "".join(c if c.isalnum() or c == "_" else "_" for c in path.stem)
    if not stem.isidentifier() or stem == "_":
        return f"reference_{stem}"
    return f"reference_{stem}" if _is_taken(stem, path) else stem


def _is_taken(name: str, path: Path) -> bool:
    if name in sys.builtin_module_names or name in sys.stdlib_module_names:
        return True
    loaded = sys.modules.get(name)
    if loaded is not None:
        return getattr(loaded, "__file__", None) != str(path)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    if spec is None or spec.origin is None:
        return False
    return Path(spec.origin).resolve() != path


def integer_constants(tree: ast.Module) -> dict[str, int]:
    """Top-level names that are assigned once, to integer arithmetic without names: N = 4 * 1024."""
    found: dict[str, int] = {}
    times: dict[str, int] = {}
    for name, value in _assignments(tree):
        times[name] = times.get(name, 0) + 1
        number = _integer(value)
        if number is not None:
            found[name] = number
    return {name: number for name, number in found.items() if times[name] == 1}


def with_constants(tree: ast.Module, constants: dict[str, int]) -> ast.Module:
    """The tree with these top-level integers replaced, so that all that depends on them follows."""
    return ast.fix_missing_locations(_Override(constants).visit(_copy(tree)))  # type: ignore[no-any-return]


def _copy(tree: ast.Module) -> ast.Module:
    return ast.Module(body=list(tree.body), type_ignores=[])


def _assignments(tree: ast.Module) -> list[tuple[str, ast.expr | None]]:
    pairs: list[tuple[str, ast.expr | None]] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs += _pairs(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name):
            plain = isinstance(node, ast.AnnAssign)
            pairs.append((node.target.id, node.value if plain else None))
    return pairs


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        both = zip(target.elts, value.elts, strict=False)
        return [pair for t, v in both for pair in _pairs(t, v)]
    return [(n.id, None) for n in ast.walk(target) if isinstance(n, ast.Name)]


_ARITHMETIC = (
    ast.Expression,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
)


def _integer(value: ast.expr | None) -> int | None:
    """The value of integer arithmetic over literals, None for any other expression."""
    if value is None or any(not isinstance(n, _ARITHMETIC) for n in ast.walk(value)):
        return None
    if any(isinstance(n, ast.Constant) and type(n.value) is not int for n in ast.walk(value)):
        return None
    if any(isinstance(n, ast.Pow) for n in ast.walk(value)) and len(ast.unparse(value)) > 12:
        return None
    try:
        number = eval(compile(ast.Expression(value), "<constant>", "eval"), {})
    except ArithmeticError:
        return None
    return number if type(number) is int else None


class _Override(ast.NodeTransformer):
    def __init__(self, constants: dict[str, int]) -> None:
        self.constants = constants

    def visit_Module(self, node: ast.Module) -> ast.Module:
        node.body = [self._statement(statement) for statement in node.body]
        return node

    def _statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            value = self._value(node.targets[0], node.value)
            return ast.copy_location(ast.Assign(node.targets, value), node)
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            value = self._value(node.target, node.value)
            new = ast.AnnAssign(node.target, node.annotation, value, node.simple)
            return ast.copy_location(new, node)
        return node

    def _value(self, target: ast.expr, value: ast.expr) -> ast.expr:
        if isinstance(target, ast.Name) and target.id in self.constants:
            return ast.copy_location(ast.Constant(self.constants[target.id]), value)
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            elements = [self._value(t, v) for t, v in zip(target.elts, value.elts, strict=False)]
            return ast.copy_location(ast.Tuple(elements, ast.Load()), value)
        return value
