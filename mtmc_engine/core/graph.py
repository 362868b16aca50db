"""The operator graph of a task: what the reference computes, as ATen operators."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

# An argument of an operator: a JSON value. A string "%name" refers to the value called
# `name`; dtypes, devices and layouts are strings such as "torch.float32" (the device "cpu" means
# the device of the call's tensors); floats that JSON lacks are the strings "inf", "-inf" and
# "nan", complex numbers such as "complex(0.0, 2.0)"; lists nest.
Arg = Any

ITEM_BYTES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}


class TensorSpec(Struct, frozen=True):
    """Shape and dtype of one tensor.

    shape: sizes at the first declared input set.
    dims:  the same sizes as expressions over the varying dimensions, such as "s0" or
           "s0*128"; a plain number where the dimension is fixed.
    dtype: torch's name without the prefix, such as "float32".
    order: dimensions as they lie in memory, outermost first, such as (0, 2, 3, 1) for channels
           last; () where they lie in their own order.
    """

    shape: tuple[int, ...]
    dtype: str
    dims: tuple[str, ...] = ()
    order: tuple[int, ...] = ()

    @property
    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def nbytes(self) -> int:
        return self.numel * ITEM_BYTES.get(self.dtype, 4)


class GraphInput(Struct, frozen=True):
    """A value that enters the graph.

    kind "input":     argument `target` of forward (its Python name).
    kind "parameter" or "buffer": attribute path `target` on the reference module.
    kind "constant":  a small tensor that the reference makes itself; `values` holds its
                      elements row by row, those that JSON lacks as an Arg has them.
    kind "prepared":  result of the graph's prepared node `name`; `target` is what it holds.
    """

    name: str
    kind: Literal["input", "parameter", "buffer", "constant", "prepared"]
    target: str
    spec: TensorSpec
    values: tuple[float | int | bool | str, ...] | None = None


class Node(Struct, frozen=True):
    """One operator call.

    op:     ATen overload such as "aten.softmax.int"; "getitem" selects from a tuple;
            "sym" is Python arithmetic over sizes (`out` is empty): args are ("size", "%x", 0)
            for x.shape[0], ("numel", "%x"), or the name of a function of Python's `operator`
            module and its arguments, such as ("mul", "%size", 4), ("floordiv", "%size", 2) and
            ("pow", "%float", -0.5), or "max", "min", "float", "int", "sqrt";
            "opaque" calls the module at path `module` as it is, with `args` and `kwargs`; its
            (nested) result is taken apart by "getitem" nodes, which index as Python does.
    out:    specs of the results, in order.
    module: attribute path of the module that issued the call, "" for the reference itself.
    line:   line of the user's file that issued the call, 0 where unknown.
    origin: of a node that a rewriting made, the captured node whose region it belongs to.
    """

    name: str
    op: str
    args: tuple[Arg, ...]
    kwargs: dict[str, Arg]
    out: tuple[TensorSpec, ...]
    module: str = ""
    line: int = 0
    origin: str = ""


class Container(Struct, frozen=True):
    """What one list or dict of a graph's outputs is in Python.

    type: "tuple", "list", "dict", or a class as "module:name".
    made: how the class takes its items: all in one sequence (torch's return types), by the names
          of its fields (named tuples and dataclasses), or as a dict.
    keys: names of the fields or keys of the dict, whose values `outputs` then lists; () for a
          dict that `outputs` has as such.
    """

    type: str
    made: Literal["items", "fields", "mapping"] = "items"
    keys: tuple[Arg, ...] = ()


class Graph(Struct, frozen=True):
    """Operators in execution order, functional: no node writes to its arguments.

    outputs:   what forward returns; "%name" leaves, lists and string-keyed dicts.
    containers: what each list and dict of `outputs` is, outermost first, depth first; () where
               the lists are tuples.
    mutations: buffer path -> name of the value that it holds when the call ends.
    captured:  False where the whole reference is one opaque node; `why` says the reason.
    prepared:  what a rewriting computes from parameters and buffers alone, once for many calls, in
               execution order; what the nodes read of it are inputs of kind "prepared".
    """

    inputs: tuple[GraphInput, ...]
    nodes: tuple[Node, ...]
    outputs: Arg
    mutations: dict[str, str] = {}
    captured: bool = True
    why: str = ""
    containers: tuple[Container, ...] = ()
    prepared: tuple[Node, ...] = ()

    def value(self, name: str) -> TensorSpec:
        """Spec of an input or of a node's first result. Raises KeyError for other names."""
        for graph_input in self.inputs:
            if graph_input.name == name:
                return graph_input.spec
        return self.node(name).out[0]

    def node(self, name: str) -> Node:
        """Raises KeyError where no node has that name."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)


def refs(value: Arg) -> list[str]:
    """Names of all values that an argument refers to, in order, repeats kept."""
    if isinstance(value, str):
        return [value[1:]] if value.startswith("%") else []
    if isinstance(value, list | tuple):
        return [name for item in value for name in refs(item)]
    if isinstance(value, dict):
        return [name for item in value.values() for name in refs(item)]
    return []


def node_refs(node: Node) -> list[str]:
    """Names of all values that a node reads, in order, repeats kept."""
    return refs(node.args) + refs(node.kwargs)
