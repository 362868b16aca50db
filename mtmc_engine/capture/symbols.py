"""Sizes of exported tensors: concrete numbers, and expressions over the dimensions that vary."""

from __future__ import annotations

from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from mtmc_engine.capture.order import memory_order
from mtmc_engine.core.graph import TensorSpec


class CannotCapture(Exception):
    """A construct that the operator graph cannot hold. `module` is the path that issued it."""

    def __init__(self, why: str, module: str = "") -> None:
        super().__init__(why)
        self.module = module


class Symbols:
    """Names the symbols of one export s0, s1, … in order of appearance in the call's arguments."""

    def __init__(self) -> None:
        self._names: dict[Any, Any] = {}
        self._values: dict[Any, Any] = {}

    def number(self, size: Any) -> None:
        """Meets the size of an input dimension: its symbols get the next names."""
        if isinstance(size, torch.SymInt):
            for symbol in sorted(size.node.expr.free_symbols, key=str):
                self._name(symbol)
            if size.node.expr.is_Symbol and size.node.hint is not None:
                self._values[size.node.expr] = sympy.Integer(int(size.node.hint))

    def _name(self, symbol: Any) -> Any:
        if symbol not in self._names:
            self._names[symbol] = sympy.Symbol(f"s{len(self._names)}", integer=True)
        return self._names[symbol]

    def expression(self, size: Any) -> str:
        """Python text such as "s0*128", or a plain number where the size is fixed."""
        if not isinstance(size, torch.SymInt):
            return str(int(size))
        renamed = size.node.expr.xreplace({s: self._name(s) for s in size.node.expr.free_symbols})
        return _printed(renamed)

    def concrete(self, size: Any) -> int:
        """The size at the shapes that were exported. Raises CannotCapture where values set it."""
        if not isinstance(size, torch.SymInt):
            return int(size)
        value = size.node.expr.xreplace(self._values)
        if value.is_number:
            return int(value)
        if size.node.hint is None:
            raise CannotCapture("a shape depends on values")
        return int(size.node.hint)

    def spec(self, value: Any) -> TensorSpec:
        """Shape, dims, dtype and order of a fake tensor."""
        shape = tuple(self.concrete(size) for size in value.shape)
        strides = tuple(self.concrete(stride) for stride in value.stride())
        return TensorSpec(
            shape,
            str(value.dtype).removeprefix("torch."),
            tuple(self.expression(size) for size in value.shape),
            memory_order(shape, strides),
        )


def _printed(expression: Any) -> str:
    from torch.utils._sympy.printers import PythonPrinter

    text: str = PythonPrinter().doprint(expression)
    return text


def evaluate(expression: str, values: dict[str, int]) -> int:
    """The value of a `dims` expression at given sizes of s0, s1, …."""
    return int(eval(expression, {"__builtins__": {"max": max, "min": min}}, dict(values)))
