"""Exports a reference under fake tensors: its operator graph and the dimensions that may vary."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.call import Call, call_of, invoke, specs_of, tensors_of
from mtmc_engine.capture.convert import convert
from mtmc_engine.capture.opaque import ShapeRule, observed_rules, recurrent_rules, standing_in
from mtmc_engine.capture.symbols import CannotCapture
from mtmc_engine.core.graph import Graph, GraphInput, Node

# Failed exports after which the whole reference is opaque; each makes one more module opaque.
MOST_ATTEMPTS = 8

Dims = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Export:
    """A graph and what the export found out.

    vary:   (tensor position, dimension) of the call's tensors that stayed symbolic.
    opaque: paths of the modules that are called as they are, with the reason.
    """

    graph: Graph
    vary: tuple[tuple[int, int], ...]
    opaque: dict[str, str]


@dataclass(frozen=True)
class Exporter:
    """Exports one operator as it is called on fake inputs.

    operator: the module or function. inputs: its call arguments, fake tensors among them.
    mode: the FakeTensorMode they were made under. user_file: whose lines nodes point to.
    allowed: (tensor position, dimension) that may vary; None lets the export decide.
    run: calls the operator on real inputs, for shapes that only values can tell; None where that
        would take too long. keywords: names of the last inputs, which are passed by name.
    """

    operator: Any
    inputs: list[Any]
    mode: Any
    user_file: str
    allowed: Dims | None = None
    run: Callable[[], Any] | None = None
    keywords: tuple[str, ...] = ()

    def export(self) -> Export:
        """The operator graph.

        What cannot be exported becomes opaque: recurrent layers always, then the modules that
        fail, one after the other, and the whole reference as the last resort. Never raises for
        what the reference does.
        """
        model = _as_module(self.operator)
        call = call_of(self.operator, self.inputs, self.keywords)
        rules = recurrent_rules(model)
        opaque = dict.fromkeys(rules, "a recurrent layer")
        open_sizes, why = True, ""
        for _ in range(MOST_ATTEMPTS):
            try:
                graph = self._graph(model, call, rules, open_sizes)
                return Export(graph, _varying(graph), opaque)
            except CannotCapture as error:
                path, why = error.module, str(error)
            except _ExportFailed as error:
                path, why = _failing_module(model, error), _reason(error)
                if open_sizes and not is_data_dependent(error):
                    open_sizes = False
                    continue
            if self.run is None or not path or path in rules:
                break
            try:
                rules |= observed_rules(model, path, self.run)
            except CannotCapture as error:
                why = str(error)
                break
            opaque[path] = why
        return Export(self._whole(call, why), (), {"": why})

    def _graph(
        self, model: Any, call: Call, rules: dict[str, ShapeRule], open_sizes: bool
    ) -> Graph:
        dims = _dynamic_shapes(call.bound, self.allowed) if open_sizes else None
        bound = inspect.BoundArguments(inspect.signature(model.forward), call.bound)
        with standing_in(model, rules), _without_hooks(model), _unchanged(model):
            self._try(model)
        with standing_in(model, rules) as calls, _without_hooks(model):
            with self.mode:
                program = _exported(model, bound, dims)
            return convert(program, list(call.targets), model, self.user_file, calls.by_key)

    def _try(self, model: Any) -> None:
        """One call without memory: the export itself hides what the call sets on modules."""
        try:
            with _quiet(), self.mode, torch.no_grad():
                invoke(model, self.inputs, self.keywords)
        except CannotCapture:
            raise
        except Exception:
            pass

    def _whole(self, call: Call, why: str) -> Graph:
        """The reference as one opaque node; its results' shapes come from a real run, if any."""
        inputs = tuple(
            GraphInput(target, "input", target, spec)
            for target, spec in zip(call.tensors, specs_of(self.inputs), strict=True)
        )
        out = specs_of(self.run()) if self.run is not None else ()
        node = Node("reference", "opaque", tuple(f"%{t}" for t in call.tensors), {}, out)
        return Graph(inputs, (node,), "%reference", {}, captured=False, why=why)


@contextmanager
def _without_hooks(model: Any) -> Iterator[None]:
    """The module without hooks of its own: programs take them over, and would call them twice."""
    kept = {name: getattr(model, name) for name in _HOOKS if getattr(model, name, None)}
    for name in kept:
        vars(model)[name] = OrderedDict()
    try:
        yield
    finally:
        vars(model).update(kept)


_HOOKS = (
    *("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    *("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"),
)


@contextmanager
def _unchanged(model: Any) -> Iterator[None]:
    """Undoes what the call sets on modules, and says so: no graph holds it, so no program does.

    Buffers may be set: a graph holds these. Raises CannotCapture with the module's path.
    """
    before = [
        (path, part, _attributes(part), dict(part._buffers)) for path, part in model.named_modules()
    ]
    try:
        yield
    finally:
        changed = [
            (path, name)
            for path, part, attributes, _ in before
            for name, value in _attributes(part).items()
            if value is not attributes.get(name, _unchanged)
        ]
        for _, part, attributes, buffers in before:
            for name in [name for name in _attributes(part) if name not in attributes]:
                del vars(part)[name]
            vars(part).update(attributes)
            part._buffers.update(buffers)
    if changed:
        path, name = changed[0]
        raise CannotCapture(f"the call sets self.{name}", path)


def _attributes(part: Any) -> dict[str, Any]:
    """What a module keeps of its own: nothing that torch or a parametrization computes anew."""
    hooked = bool(part._forward_pre_hooks)
    return {
        name: value
        for name, value in vars(part).items()
        if not name.startswith("_") and not (hooked and isinstance(value, torch.Tensor))
    }


class _ExportFailed(Exception):
    """torch.export gave up; `__cause__` says why."""


def _exported(model: Any, bound: inspect.BoundArguments, dims: Any) -> Any:
    try:
        with _quiet():
            program = torch.export.export(
                model, bound.args, bound.kwargs, dynamic_shapes=dims, strict=False
            )
            return program.run_decompositions({})
    except CannotCapture:
        raise
    except Exception as error:
        raise _ExportFailed from error


class _Function(torch.nn.Module):  # type: ignore[misc]
    """Lets a function be exported under its own parameter names."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = _renamed(function)


def _renamed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under the name forward: export records the lines of such frames only."""
    if not isinstance(function, FunctionType):
        return function
    code = function.__code__.replace(co_name="forward")
    arguments = (function.__globals__, "forward", function.__defaults__, function.__closure__)
    renamed = FunctionType(code, *arguments)
    renamed.__kwdefaults__ = function.__kwdefaults__
    return renamed


def _as_module(operator: Any) -> Any:
    return operator if isinstance(operator, torch.nn.Module) else _Function(operator)


def _dynamic_shapes(bound: dict[str, Any], allowed: Dims | None) -> Any:
    positions = iter(range(len(tensors_of(bound))))

    def dims(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return None
        position = next(positions)
        return {
            d: torch.export.Dim.AUTO
            for d in range(leaf.dim())
            if allowed is None or (position, d) in allowed
        }

    return pytree.tree_map(dims, bound)


def _varying(graph: Graph) -> tuple[tuple[int, int], ...]:
    tensors = [i.spec for i in graph.inputs if i.kind == "input"]
    return tuple(
        (position, d)
        for position, spec in enumerate(tensors)
        for d, size in enumerate(spec.dims)
        if not size.isdigit()
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Export logs its failures at length; what matters of them is said in one sentence."""
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    return chain


def is_data_dependent(error: BaseException) -> bool:
    """Whether an export or a fake run failed because a branch or a size depends on values."""
    names = [type(link).__name__ for link in _chain(error)]
    return any("DataDependent" in name or "DynamicOutputShape" in name for name in names)


def _failing_module(model: Any, error: BaseException) -> str:
    """Path of the innermost module that was being called when the export failed."""
    paths = {id(module): path for path, module in model.named_modules()}
    found = ""
    for link in _chain(error):
        trace = link.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_name == "_call_impl":
                found = paths.get(id(trace.tb_frame.f_locals.get("self")), "") or found
            trace = trace.tb_next
        if found:
            break
    return found


def _reason(error: BaseException) -> str:
    if is_data_dependent(error):
        return "a branch or a size that depends on values"
    cause = error.__cause__ or error
    lines = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {lines[0][:120]}" if lines else type(cause).__name__
