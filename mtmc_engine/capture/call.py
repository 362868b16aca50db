"""The call of a reference: argument names, tensors among the arguments, and their specs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.order import memory_order
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.graph import Arg, TensorSpec
from mtmc_engine.core.task import Parameter

# Torch's own constants, which print as the source that names them.
_NAMED = torch.dtype | torch.layout | torch.memory_format | torch.device


def invoke(operator: Any, arguments: Sequence[Any], keywords: Sequence[str] = ()) -> Any:
    """Calls the operator, the last arguments by these names."""
    first = len(arguments) - len(keywords)
    return operator(*arguments[:first], **dict(zip(keywords, arguments[first:], strict=True)))


def in_call_order(operator: Any, named: dict[str, Any]) -> tuple[list[Any], tuple[str, ...]]:
    """Arguments given by name: those that may go by position first, and the names of the others.

    operator: a module, its class, or a function.
    """
    parameters = list(inspect.signature(called_of(operator)).parameters.values())
    by_position: list[str] = []
    for parameter in parameters[1:] if isinstance(operator, type) else parameters:
        is_plain = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if not is_plain or parameter.name not in named:
            break
        by_position.append(parameter.name)
    known = [parameter.name for parameter in parameters]
    rest = [name for name in (*known, *named) if name in named and name not in by_position]
    by_name = tuple(dict.fromkeys(rest))
    return [named[name] for name in (*by_position, *by_name)], by_name


def called_of(operator: Any) -> Any:
    """What has the signature of the call: forward of a module or its class, or the function."""
    kind = operator if isinstance(operator, type) else type(operator)
    return operator.forward if issubclass(kind, torch.nn.Module) else operator


@dataclass(frozen=True)
class Call:
    """How the inputs bind to the operator's parameters.

    names:   all parameters in order; fixed: values of the leaves that are plain numbers or text.
    bound:   the given arguments by name.
    targets: for each flattened leaf of the arguments, how the operator's code names it;
    tensors: the same for the leaves that are tensors.
    parameters: as a Task has them.
    """

    names: tuple[str, ...]
    fixed: dict[str, Arg]
    bound: dict[str, Any]
    targets: tuple[str, ...]
    tensors: tuple[str, ...]
    parameters: tuple[Parameter, ...] = ()


def call_of(operator: Any, inputs: Sequence[Any], keywords: Sequence[str] = ()) -> Call:
    """Binds the inputs to the operator's parameters. Raises UsageError where they do not fit.

    keywords: names of the last inputs, which are passed by name.
    """
    signature = inspect.signature(called_of(operator))
    try:
        bound = invoke(signature.bind, inputs, keywords)
    except TypeError as error:
        what = f"{len(inputs)} inputs are made"
        raise UsageError(f"The inputs do not fit the call: {error}; {what}.") from error
    given = dict(bound.arguments)
    bound.apply_defaults()
    everything = _leaves(dict(bound.arguments))
    fixed = {target: _as_arg(leaf) for target, leaf in everything if _is_plain(leaf)}
    leaves = _leaves(given)
    tensors = tuple(target for target, leaf in leaves if isinstance(leaf, torch.Tensor))
    return Call(
        tuple(bound.arguments),
        fixed,
        given,
        tuple(target for target, _ in leaves),
        tensors,
        _parameters(signature),
    )


def _leaves(bound: dict[str, Any]) -> list[tuple[str, Any]]:
    """Leaves of the arguments with the source that reads them; None is a leaf."""
    return [(_target(path), leaf) for path, leaf in pytree.tree_flatten_with_path(bound)[0]]


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | complex | str | _NAMED)


def _as_arg(value: Any) -> Arg:
    """A plain value as the graph has it: what JSON lacks as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    return str(value) if isinstance(value, _NAMED) else value


_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "/",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "",
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.KEYWORD_ONLY: "name",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def _parameters(signature: inspect.Signature) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(p.name, _KINDS[p.kind], None if p.default is p.empty else _source(p.default))  # type: ignore[arg-type]
        for p in signature.parameters.values()
    )


def _source(default: Any) -> str:
    """Python source of a default; "..." for an object that has none."""
    if isinstance(default, float) and not math.isfinite(default):
        return f'float("{default}")'
    if isinstance(default, _NAMED):
        text = str(default)
        return f'torch.device("{text}")' if isinstance(default, torch.device) else text
    if isinstance(default, tuple | list):
        items = ", ".join(map(_source, default))
        comma = "," if isinstance(default, tuple) and len(default) == 1 else ""
        return f"({items}{comma})" if isinstance(default, tuple) else f"[{items}]"
    plain = default is None or isinstance(default, bool | int | float | complex | str)
    return repr(default) if plain else "..."


def _target(path: tuple[Any, ...]) -> str:
    """Python text for a leaf of the arguments: x, xs[0], state['h']."""
    name: str = path[0].key
    return name + "".join(map(str, path[1:]))


def tensors_of(inputs: Any) -> list[Any]:
    """The tensors among call arguments, in order; nested lists and dicts are looked into."""
    return [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]


def specs_of(inputs: Any) -> tuple[TensorSpec, ...]:
    """Specs of the tensors among call arguments, all sizes taken as fixed."""
    return tuple(spec_of(tensor) for tensor in tensors_of(inputs))


def spec_of(tensor: Any) -> TensorSpec:
    shape = tuple(int(size) for size in tensor.shape)
    dims = tuple(str(size) for size in shape)
    dense = tensor.layout is torch.strided
    order = memory_order(shape, [int(step) for step in tensor.stride()]) if dense else ()
    return TensorSpec(shape, dtype_name(tensor.dtype), dims, order)


def dtype_name(dtype: Any) -> str:
    """torch.float32 -> "float32"."""
    name: str = str(dtype).removeprefix("torch.")
    return name
