"""Modules that stay as they are: a stand-in operator takes their place during export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.symbols import CannotCapture

RECURRENT = (torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU)

# What a module returns for call arguments: tensors of the right shapes, values unspecified.
ShapeRule = Callable[..., Any]


@dataclass(frozen=True)
class OpaqueCall:
    """One call of an opaque module: how its flat tensors fold into arguments and results."""

    path: str
    arguments: Any
    leaves: tuple[Any, ...]
    results: Any


@dataclass
class OpaqueCalls:
    """The calls of opaque modules in one export, by key."""

    by_key: dict[str, OpaqueCall] = field(default_factory=dict)
    rules: dict[str, Callable[[list[Any]], list[Any]]] = field(default_factory=dict)


_current = OpaqueCalls()


def _unused(x: list[Any], key: str) -> list[Any]:
    raise RuntimeError("only the shapes of an opaque call are ever asked for")


def _shapes(x: list[Any], key: str) -> list[Any]:
    return _current.rules[key](x)


_SCHEMA = "(Tensor[] x, str key) -> Tensor[]"
_opaque = torch.library.custom_op("mtmc::opaque", _unused, mutates_args=(), schema=_SCHEMA)
_opaque.register_fake(_shapes)


class StandIn(torch.nn.Module):  # type: ignore[misc]
    """Takes the place of the module at `path`: one operator that has the module's shapes."""

    def __init__(self, path: str, rule: ShapeRule) -> None:
        super().__init__()
        self.path = path
        self.rule = rule

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves, folded = pytree.tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if any(isinstance(leaf, torch.SymInt) for leaf in leaves):
            raise CannotCapture(f"{self.path} takes a size that varies")
        fixed = tuple(None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves)
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

        def results(flat: list[Any]) -> Any:
            again: list[Any] = list(fixed)
            for place, tensor in zip(places, flat, strict=True):
                again[place] = tensor
            called, named = pytree.tree_unflatten(again, folded)
            return self.rule(*called, **named)

        key = f"{self.path}#{len(_current.by_key)}"
        _, out = pytree.tree_flatten(results(tensors))
        _current.by_key[key] = OpaqueCall(self.path, (folded, tuple(places)), fixed, out)
        _current.rules[key] = lambda flat: pytree.tree_flatten(results(flat))[0]
        return pytree.tree_unflatten(torch.ops.mtmc.opaque(tensors, key), out)


@contextmanager
def standing_in(model: Any, rules: dict[str, ShapeRule]) -> Iterator[OpaqueCalls]:
    """Replaces the modules at these paths by stand-ins; the model is as before afterwards."""
    global _current  # noqa: PLW0603
    _current = OpaqueCalls()
    replaced: list[tuple[Any, str, Any]] = []
    for path, rule in rules.items():
        original = model.get_submodule(path)
        stand_in = StandIn(path, rule)
        for parent in model.modules():
            for name, child in parent._modules.items():
                if child is original:
                    replaced.append((parent, name, child))
                    parent._modules[name] = stand_in
    try:
        yield _current
    finally:
        for parent, name, child in replaced:
            parent._modules[name] = child


def recurrent_rules(model: Any) -> dict[str, ShapeRule]:
    """Shape rules of all recurrent layers: exporting them would unroll them over time."""
    return {
        path: recurrent_rule(module)
        for path, module in model.named_modules()
        if path and isinstance(module, RECURRENT)
    }


def recurrent_rule(layer: Any) -> ShapeRule:
    """Shapes of nn.RNN, nn.LSTM and nn.GRU, from torch's documentation of their outputs."""
    directions = 2 if layer.bidirectional else 1
    width = layer.proj_size or layer.hidden_size
    states = layer.num_layers * directions

    def rule(x: Any, hx: Any = None) -> Any:
        if not isinstance(x, torch.Tensor):
            raise CannotCapture("a packed sequence goes into a recurrent layer")
        if x.shape[-1] != layer.input_size:
            raise ValueError(f"input has {x.shape[-1]} features, not {layer.input_size}")
        batch = [] if x.dim() == 2 else [x.shape[0 if layer.batch_first else 1]]
        out = x.new_empty([*x.shape[:-1], width * directions])
        hidden = x.new_empty([states, *batch, width])
        if isinstance(layer, torch.nn.LSTM):
            return out, (hidden, x.new_empty([states, *batch, layer.hidden_size]))
        return out, hidden

    return rule


def observed_rules(model: Any, path: str, run: Callable[[], Any]) -> dict[str, ShapeRule]:
    """The shape rule of a module from one real run: it returns what it returned then.

    Raises CannotCapture where it was not reached or returns more than tensors.
    """
    seen: list[Any] = []

    def remember(_module: Any, _args: Any, result: Any) -> None:
        seen.append(pytree.tree_map(_shape_of, result))

    handle = model.get_submodule(path).register_forward_hook(remember)
    try:
        run()
    finally:
        handle.remove()
    if not seen or any(result != seen[0] for result in seen):
        raise CannotCapture(f"the shapes that {path} returns")
    return {path: _constant_rule(seen[0])}


@dataclass(frozen=True)
class _Shape:
    sizes: tuple[int, ...]
    dtype: Any


def _shape_of(leaf: Any) -> Any:
    return _Shape(tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf


def _constant_rule(result: Any) -> ShapeRule:
    """Returns tensors of the observed shapes; one shaped like the module's first argument
    follows it where its sizes vary."""
    if any(not isinstance(leaf, _Shape) for leaf in pytree.tree_leaves(result)):
        raise CannotCapture("a module with a data-dependent branch returns more than tensors")

    def rule(*args: Any, **_kwargs: Any) -> Any:
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None

        def empty(shape: _Shape) -> Any:
            if first is not None and _hints(first) == shape.sizes:
                return torch.empty_like(first, dtype=shape.dtype)
            return torch.empty(shape.sizes, dtype=shape.dtype)

        return pytree.tree_map(empty, result)

    return rule


def _hints(tensor: Any) -> tuple[int, ...]:
    """The sizes at the exported shapes, looked at without fixing those that vary."""
    return tuple(s.node.hint if isinstance(s, torch.SymInt) else s for s in tensor.shape)
