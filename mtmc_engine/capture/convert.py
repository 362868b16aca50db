"""An exported program, turned into the operator graph that all rooms speak."""

from __future__ import annotations

import cmath
import math
import operator
import re
import sys
from typing import Any

import torch
from msgspec import structs
from torch.utils import _pytree as pytree

from mtmc_engine.capture.opaque import OpaqueCall
from mtmc_engine.capture.results import Outputs
from mtmc_engine.capture.symbols import CannotCapture, Symbols
from mtmc_engine.core.graph import Arg, Graph, GraphInput, Node, TensorSpec, node_refs, refs

# A tensor that the reference makes itself is inlined up to this many elements.
MOST_VALUES = 256

_IDENTITY = {"aten.detach.default", "aten.alias.default", "aten.lift_fresh_copy.default"}
_DROPOUT = {"aten.dropout.default", "aten.feature_dropout.default", "aten.alpha_dropout.default"}
_SYM_NAMES = re.compile(r"^_?sym_")


def convert(
    program: Any,
    targets: list[str],
    model: Any,
    user_file: str,
    calls: dict[str, OpaqueCall],
) -> Graph:
    """The graph of an exported program (after run_decompositions).

    targets: for each flattened call argument, how the call's code names it: "x", "xs[0]".
    calls:   the opaque calls that were met during the export.
    Raises CannotCapture where something does not fit into a Graph.
    """
    return _Conversion(program, targets, model, user_file, calls).graph()


class _Conversion:
    def __init__(
        self,
        program: Any,
        targets: list[str],
        model: Any,
        user_file: str,
        calls: dict[str, OpaqueCall],
    ) -> None:
        self.program = program
        self.targets = targets
        self.model = model
        self.user_file = user_file
        self.calls = calls
        self.symbols = Symbols()
        self.refs: dict[str, str] = {}  # name in the exported program -> name in the graph
        self.taken: set[str] = set()
        self.inputs: list[GraphInput] = []
        self.nodes: list[Node] = []

    def graph(self) -> Graph:
        placeholders = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        self._name_user_inputs(placeholders)
        self._take_inputs(placeholders)
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self._take_from(node)
            elif node.op not in ("placeholder", "output"):
                raise CannotCapture("control flow inside the graph", _module(node))
        outputs, mutations = self._outputs()
        returned = Outputs()
        plain = returned.plain(outputs)
        containers = tuple(returned.containers)
        return _pruned(
            Graph(tuple(self.inputs), tuple(self.nodes), plain, mutations, containers=containers)
        )

    def _fresh(self, wanted: str) -> str:
        base = re.sub(r"\W+", "_", wanted).strip("_") or "value"
        base = f"v_{base}" if base[0].isdigit() else base
        name, count = base, 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name

    def _name_user_inputs(self, placeholders: dict[str, Any]) -> None:
        """The call's arguments first: they keep their Python names and number the symbols."""
        specs = [s for s in self.program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
        for spec, target in zip(specs, self.targets, strict=True):
            value = placeholders[spec.arg.name].meta["val"] if spec.arg.name in placeholders else 0
            if isinstance(value, torch.Tensor):
                self.refs[spec.arg.name] = self._fresh(target)
                for size in value.shape:
                    self.symbols.number(size)

    def _take_inputs(self, placeholders: dict[str, Any]) -> None:
        targets = iter(self.targets)
        for spec in self.program.graph_signature.input_specs:
            kind = spec.kind.name
            if kind == "USER_INPUT":
                target = next(targets)
                if spec.arg.name in self.refs:
                    self._add_input(placeholders[spec.arg.name], "input", target)
            elif kind in ("PARAMETER", "BUFFER"):
                self.refs[spec.arg.name] = self._fresh(spec.target)
                self._add_input(placeholders[spec.arg.name], kind.lower(), spec.target)
            elif kind == "CONSTANT_TENSOR":
                self._take_constant(placeholders[spec.arg.name], spec.target)
            else:
                raise CannotCapture(f"an input of kind {kind.lower()}")

    def _add_input(self, node: Any, kind: Any, target: str, values: Any = None) -> None:
        name = self.refs[node.name]
        spec = self.symbols.spec(node.meta["val"])
        self.inputs.append(GraphInput(name, kind, target, spec, values))

    def _take_constant(self, node: Any, target: str) -> None:
        """A plain tensor attribute is read like a buffer; other constants are inlined."""
        if isinstance(_attribute(self.model, target), torch.Tensor):
            self.refs[node.name] = self._fresh(target)
            self._add_input(node, "buffer", target)
            return
        user = next(iter(node.users), None)
        if user is None:
            return
        value = self.program.constants[target]
        if type(value) is not torch.Tensor:
            raise CannotCapture("a constant whose values are not known", _module(user))
        self.refs[node.name] = self._fresh("constant")
        flat = value.detach().flatten().tolist()
        if flat and all(_number(v) == _number(flat[0]) for v in flat):
            self._add_full(node, flat[0])
        elif len(flat) <= MOST_VALUES:
            self._add_input(node, "constant", target, tuple(map(_number, flat)))
        else:
            why = f"a constant of {len(flat):,} values made inside forward"
            raise CannotCapture(why, _module(user))

    def _add_full(self, node: Any, value: Any) -> None:
        spec = self.symbols.spec(node.meta["val"])
        args = (list(spec.shape), _number(value))
        dtype = {"dtype": f"torch.{spec.dtype}", "device": "cpu"}
        self.nodes.append(Node(self.refs[node.name], "aten.full.default", args, dtype, (spec,)))

    def _take_from(self, node: Any) -> None:
        try:
            self._take(node)
        except CannotCapture as error:
            raise CannotCapture(str(error), error.module or _module(node)) from error

    def _take(self, node: Any) -> None:
        value = node.meta.get("val")
        if value is None and node.target is not operator.getitem:
            return  # assertions and constraints
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            self._take_sym(node)
        elif str(node.target) == "mtmc.opaque.default":
            self._take_opaque(node)
        elif node.target is operator.getitem:
            self._take_getitem(node)
        elif isinstance(node.target, torch._ops.OpOverload):
            self._take_operator(node)
        else:
            raise CannotCapture(f"{getattr(node.target, '__name__', node.target)}", _module(node))

    def _take_sym(self, node: Any) -> None:
        if isinstance(node.target, torch._ops.OpOverload):
            if not node.target._schema.name.startswith("aten::sym_"):
                raise CannotCapture("a number that is read from a tensor")
            kind = node.target._schema.name.removeprefix("aten::sym_")
        else:
            kind = _SYM_NAMES.sub("", node.target.__name__)
        name = self._named(node, kind)
        args = (kind, *(self._arg(a) for a in node.args))
        self.nodes.append(Node(name, "sym", args, {}, (), _module(node), self._line(node)))

    def _take_operator(self, node: Any) -> None:
        op = str(node.target)
        if self._is_identity(node, op):
            self.refs[node.name] = self.refs[node.args[0].name]
            return
        name = self._named(node, op.split(".")[1].strip("_"))
        args = tuple(self._arg(a) for a in node.args)
        kwargs = {k: self._arg(v) for k, v in node.kwargs.items()}
        out = self._specs(node.meta["val"])
        self.nodes.append(Node(name, op, args, kwargs, out, _module(node), self._line(node)))

    def _is_identity(self, node: Any, op: str) -> bool:
        if op in _DROPOUT:
            return not node.args[2] or node.args[1] == 0
        if op == "aten.clone.default" and not node.kwargs:
            return all(user.op != "output" for user in node.users)
        if op == "aten.slice.Tensor":
            return _is_whole_slice(node)
        return op in _IDENTITY

    def _take_getitem(self, node: Any) -> None:
        source, index = node.args
        at = f"{source.name}[{index}]"
        if at in self.refs:  # a result of an opaque call
            self.refs[node.name] = self.refs[at]
            return
        name = self._named(node, "getitem")
        args = (f"%{self.refs[source.name]}", index)
        out = self._specs(node.meta["val"])
        self.nodes.append(Node(name, "getitem", args, {}, out, _module(node), self._line(node)))

    def _take_opaque(self, node: Any) -> None:
        tensors, key = node.args
        call = self.calls[key]
        folded, places = call.arguments
        leaves = [self._arg(leaf) for leaf in call.leaves]
        for place, tensor in zip(places, tensors, strict=True):
            leaves[place] = self._arg(tensor)
        args, kwargs = pytree.tree_unflatten(leaves, folded)
        specs = self._specs(node.meta["val"])
        name = self._named(node, call.path)
        line = self._line(node)
        plain = tuple(_plain(a) for a in args)
        named = {k: _plain(v) for k, v in kwargs.items()}
        self.nodes.append(Node(name, "opaque", plain, named, specs, call.path, line))
        numbered = pytree.tree_unflatten(list(range(len(specs))), call.results)
        self._unpack(name, numbered, specs, node.name)

    def _unpack(self, name: str, results: Any, specs: tuple[TensorSpec, ...], source: str) -> None:
        """Emits the indexing that takes each tensor out of a module's (nested) result."""
        if isinstance(results, int):
            self.refs[f"{source}[{results}]"] = name
            return
        if not isinstance(results, dict | list | tuple):
            raise CannotCapture(f"a module returns a {type(results).__name__}")
        items = results.items() if isinstance(results, dict) else enumerate(results)
        for index, item in items:
            if item is None:
                continue
            part = self._fresh("getitem")
            out = tuple(specs[i] for i in pytree.tree_leaves(item) if i is not None)
            self.nodes.append(Node(part, "getitem", (f"%{name}", index), {}, out))
            self._unpack(part, item, specs, source)

    def _named(self, node: Any, wanted: str) -> str:
        self.refs[node.name] = self._fresh(wanted)
        return self.refs[node.name]

    def _specs(self, value: Any) -> tuple[TensorSpec, ...]:
        values = value if isinstance(value, list | tuple) else [value]
        return tuple(self.symbols.spec(v) for v in values if isinstance(v, torch.Tensor))

    def _arg(self, value: Any) -> Arg:
        if isinstance(value, torch.fx.Node):
            if value.name not in self.refs:
                constant = value.meta.get("val")
                if value.op == "placeholder" and not isinstance(constant, torch.Tensor):
                    return _number(constant)
                raise CannotCapture(f"the value {value.name}", _module(value))
            return f"%{self.refs[value.name]}"
        if isinstance(value, list | tuple):
            return [self._arg(v) for v in value]
        if isinstance(value, dict):
            return {k: self._arg(v) for k, v in value.items()}
        if isinstance(value, torch.SymInt):
            return self.symbols.concrete(value)
        return _number(value)

    def _line(self, node: Any) -> int:
        """The user's innermost line in the node's stack trace."""
        trace = node.meta.get("stack_trace") or ""
        lines = re.findall(r'File "([^"]+)", line (\d+)', trace)
        return next((int(n) for f, n in reversed(lines) if f == self.user_file), 0)

    def _outputs(self) -> tuple[Any, dict[str, str]]:
        """The result as forward returns it, with references for leaves; and buffers' values."""
        leaves: list[Arg] = []
        mutations: dict[str, str] = {}
        for spec in self.program.graph_signature.output_specs:
            kind = spec.kind.name
            if kind == "USER_OUTPUT":
                leaves.append(self._output(spec.arg))
            elif kind in ("BUFFER_MUTATION", "PARAMETER_MUTATION"):
                mutations[spec.target] = self.refs[spec.arg.name]
            elif kind == "USER_INPUT_MUTATION":
                raise CannotCapture(f"forward writes into its argument {spec.target}")
            else:
                raise CannotCapture(f"an output of kind {kind.lower()}")
        try:
            result = pytree.tree_unflatten(leaves, self.program.call_spec.out_spec)
        except Exception as error:  # whatever a user's constructor raises
            raise CannotCapture("a result that cannot be made from its parts") from error
        return result, mutations

    def _output(self, argument: Any) -> Arg:
        if hasattr(argument, "value"):
            return _number(argument.value)
        return f"%{self.refs[argument.name]}"


def _is_whole_slice(node: Any) -> bool:
    """x[:], as indexing emits it for the dimensions that it leaves alone."""
    given: list[Any] = list(node.args)
    defaults: list[Any] = [None, 0, None, None, None]
    tensor, dim, start, end, step = given + defaults[len(given) :]
    size = tensor.meta["val"].shape[dim]
    fixed = size if type(size) is int else None
    ends = end is None or (type(end) is int and end in (sys.maxsize, fixed))
    return start in (None, 0) and ends and step in (None, 1)


def _attribute(model: Any, path: str) -> Any:
    value = model
    for part in path.split("."):
        value = getattr(value, part, None)
    return value


def _module(node: Any) -> str:
    """Path of the module that issued the call; a second call of it carries "@1" in torch."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    return "" if path.startswith("_empty") else re.sub(r"@\d+", "", path)


def _number(value: Any) -> Arg:
    """A JSON value: infinities and NaN as "inf", "-inf", "nan", torch's own constants as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, complex) and cmath.isfinite(value):
        return f"complex({value.real!r}, {value.imag!r})"
    if isinstance(value, torch.dtype | torch.device | torch.layout | torch.memory_format):
        return str(value)
    raise CannotCapture(f"an argument of type {type(value).__name__}")


def _plain(value: Any) -> Arg:
    """Lists, tuples and string-keyed dicts of leaves; named tuples become lists."""
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {k: _plain(v) for k, v in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise CannotCapture(f"a result of type {type(value).__name__}")


def _pruned(graph: Graph) -> Graph:
    """Without the nodes that nothing reads; opaque calls stay, since they may have effects."""
    wanted = set(refs(graph.outputs)) | set(graph.mutations.values())
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.name in wanted or node.op == "opaque":
            kept.append(node)
            wanted.update(node_refs(node))
    inputs = tuple(i for i in graph.inputs if i.kind == "input" or i.name in wanted)
    return structs.replace(graph, inputs=inputs, nodes=tuple(reversed(kept)))
