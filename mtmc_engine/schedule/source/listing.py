"""What a Triton source holds: kernels, their launches, and what names stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import libcst as cst

from mtmc_engine.schedule.source.code import Code, code_of, dotted, walk

Expression = cst.BaseExpression


@dataclass(frozen=True, eq=False)
class Parameter:
    """One parameter of a kernel."""

    name: str
    constexpr: bool
    default: Expression | None
    node: cst.Param


@dataclass(frozen=True, eq=False, repr=False)
class Kernel:
    """A function under triton.jit. decorators: by their last word, such as "autotune"."""

    name: str
    node: cst.FunctionDef
    parameters: tuple[Parameter, ...]
    decorators: Mapping[str, cst.Decorator]

    @property
    def is_tuned(self) -> bool:
        return "autotune" in self.decorators

    def parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)


@dataclass(frozen=True, eq=False, repr=False)
class Launch:
    """A call `kernel[grid](...)`.

    arguments: by parameter or option ("num_warps"). whole: no argument is hidden behind a star.
    function: that it stands in, None at the top level.
    """

    kernel: Kernel
    call: cst.Call
    grid: Expression
    arguments: Mapping[str, cst.Arg]
    whole: bool
    function: cst.FunctionDef | None

    def value(self, name: str) -> Expression | None:
        """What is passed for a parameter; its default where nothing is."""
        if name in self.arguments:
            return self.arguments[name].value
        parameter = self.kernel.parameter(name)
        return parameter.default if parameter else None


@dataclass(frozen=True, eq=False)
class Binding:
    """A place where a name gets a value. value: None where it is no plain assignment of one."""

    name: str
    value: Expression | None
    node: cst.CSTNode


@dataclass(frozen=True, eq=False, repr=False)
class Listing:
    """A source by its kernels and launches, in the order in which they are written."""

    code: Code

    @cached_property
    def language(self) -> frozenset[str]:
        """Words that stand for triton.language here."""
        found = {"tl", "triton.language"}
        for node in walk(self.code.module):
            if isinstance(node, cst.ImportAlias) and node.asname is not None:
                name = dotted(node.name)
                if name in ("triton.language", "language"):
                    found.add(dotted(node.asname.name))
        return frozenset(found)

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        found = (n for n in self.code.module.body if isinstance(n, cst.FunctionDef))
        kernels = (_kernel(node, self.language) for node in found)
        return {kernel.name: kernel for kernel in kernels if kernel is not None}

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(self._launches())

    def launches_of(self, kernel: Kernel) -> tuple[Launch, ...]:
        return tuple(launch for launch in self.launches if launch.kernel is kernel)

    def _launches(self) -> Iterator[Launch]:
        for node in walk(self.code.module):
            if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Subscript)):
                continue
            kernel = self.kernels.get(dotted(node.func.value))
            index = node.func.slice
            if kernel is None or not isinstance(index[0].slice, cst.Index):
                continue
            grid = index[0].slice.value
            names = [parameter.name for parameter in kernel.parameters]
            plain = [a for a in node.args if a.keyword is None and not a.star]
            arguments = dict(zip(names, plain, strict=False))
            arguments |= {a.keyword.value: a for a in node.args if a.keyword is not None}
            whole = not any(a.star for a in node.args) and len(index) == 1
            function = self.code.function(node)
            yield Launch(kernel, node, grid, arguments, whole, function)

    def word(self, call: cst.CSTNode) -> str:
        """ "load" for a call of tl.load; "" for what is no call of Triton's language."""
        if not isinstance(call, cst.Call):
            return ""
        name = dotted(call.func)
        base, _, word = name.rpartition(".")
        return word if base in self.language else ""

    def calls(self, node: cst.CSTNode, *words: str) -> Iterator[cst.Call]:
        """Calls of these functions of Triton's language below a node."""
        for part in walk(node):
            if isinstance(part, cst.Call) and self.word(part) in words:
                yield part

    def bindings(self, scope: cst.FunctionDef | None) -> dict[str, list[Binding]]:
        """All places where a function, or the module itself, binds each of its names."""
        return _bindings(self.code.module if scope is None else scope)

    def only(self, scope: cst.FunctionDef | None, name: str) -> Binding | None:
        """The one place where a name is bound in a scope; None where there are more or none."""
        found = self.bindings(scope).get(name, ())
        return found[0] if len(found) == 1 else None


@lru_cache(maxsize=32)
def listing_of(text: str) -> Listing:
    """The listing of a source. Raises UsageError where it is no Python."""
    return Listing(code_of(text))


def _kernel(node: cst.FunctionDef, language: frozenset[str]) -> Kernel | None:
    decorators: dict[str, cst.Decorator] = {}
    for decorator in node.decorators:
        called = decorator.decorator
        name = dotted(called.func if isinstance(called, cst.Call) else called)
        decorators[name.rpartition(".")[2]] = decorator
        if name.startswith("torch."):
            return None
    if "jit" not in decorators:
        return None
    parameters = tuple(_parameter(p, language) for p in (*node.params.params,))
    return Kernel(node.name.value, node, parameters, decorators)


def _parameter(node: cst.Param, language: frozenset[str]) -> Parameter:
    annotation = dotted(node.annotation.annotation) if node.annotation else ""
    base, _, word = annotation.rpartition(".")
    is_constexpr = word == "constexpr" and (not base or base in language)
    return Parameter(node.name.value, is_constexpr, node.default, node)


@lru_cache(maxsize=256)
def _bindings(scope: cst.Module | cst.FunctionDef) -> dict[str, list[Binding]]:
    found: dict[str, list[Binding]] = {}
    for node in _inside(scope):
        for binding in _bound(node):
            found.setdefault(binding.name, []).append(binding)
    return found


def _inside(scope: cst.Module | cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """Nodes of a scope in order, those of functions and classes within it left out."""
    stack: list[cst.CSTNode] = list(
        reversed(scope.body.children if isinstance(scope, cst.FunctionDef) else scope.body)
    )
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda):
            stack += reversed(node.children)


def _bound(node: cst.CSTNode) -> Iterator[Binding]:
    match node:
        case cst.Assign(targets=targets, value=value):
            for target in targets:
                yield from _pairs(target.target, value, node)
        case cst.AnnAssign(target=target, value=value):
            yield from _pairs(target, value, node)
        case cst.AugAssign(target=target):
            yield from _pairs(target, None, node)
        case cst.For(target=target):
            yield from _pairs(target, None, node)
        case cst.NamedExpr(target=target):
            yield from _pairs(target, None, node)
        case cst.WithItem(asname=cst.AsName(name=name)):
            yield from _pairs(name, None, node)
        case _:
            return


def _pairs(target: cst.CSTNode, value: Expression | None, node: cst.CSTNode) -> Iterator[Binding]:
    if isinstance(target, cst.Name):
        yield Binding(target.value, value, node)
    elif isinstance(target, cst.Tuple | cst.List):
        parts: list[Expression | None] = [None] * len(target.elements)
        if isinstance(value, cst.Tuple) and len(value.elements) == len(parts):
            parts = [element.value for element in value.elements]
        for element, part in zip(target.elements, parts, strict=True):
            yield from _pairs(element.value, part, node)
