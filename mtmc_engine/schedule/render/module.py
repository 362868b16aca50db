"""A whole program: imports, kernels, launchers and the entry that calls them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from mtmc_engine.core.graph import Arg, Graph, Node, node_refs
from mtmc_engine.core.program import ByHand, Group, Library, Schedule, Templated
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.flow import inputs_of, outputs_of
from mtmc_engine.schedule.labels import label_of
from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.render.by_hand import HandWritten, hand_written
from mtmc_engine.schedule.render.group import render_group
from mtmc_engine.schedule.render.helpers import HELPERS
from mtmc_engine.schedule.render.library import library_call, size_expression
from mtmc_engine.schedule.render.names import Names, attribute, identifier
from mtmc_engine.schedule.render.unit import WIDTH, GroupText, indented, wrapped
from mtmc_engine.schedule.templates.trace import trace


def render(task: Task, schedule: Schedule) -> str:
    """The program's source: a Python module that imports the user's own file and nothing else.

    Groups by hand keep their source as it is; one that holds the entry itself is the module.
    Raises Unsupported where a templated group does not fit its template.
    """
    entry = entry_name(task)
    for group in schedule.groups:
        if isinstance(group.form, ByHand) and _defines(group.form.source, entry):
            return group.form.source
    texts = _group_texts(task, schedule)
    writer = _Entry(task, schedule, texts)
    body = writer.lines()
    blocks = [_docstring(task, schedule, texts), _imports(task, texts, writer), ""]
    helpers = sorted({name for text in texts.values() for name in text.helpers})
    for source in [*(HELPERS[name] for name in helpers), *(t.source for t in texts.values())]:
        blocks += ["", source.rstrip("\n"), ""]
    blocks += ["", *body]
    return "\n".join(blocks).replace("\n\n\n\n", "\n\n\n") + "\n"


def entry_name(task: Task) -> str:
    """What the program defines: ModelNew, or a function of the reference's name."""
    return "ModelNew" if task.form == "module" else task.entry


def _defines(source: str, name: str) -> bool:
    return any(
        isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
        for node in ast.parse(source).body
    )


def _group_texts(task: Task, schedule: Schedule) -> dict[int, GroupText]:
    """Rendered text of every group that has a kernel, by its place in the schedule."""
    taken = {task.entry, entry_name(task), *task.arguments, *HELPERS}
    texts: dict[int, GroupText] = {}
    precision = "tf32" if task.tf32 or task.policy.precision == "tf32" else "ieee"
    for at, group in enumerate(schedule.groups):
        if isinstance(group.form, ByHand):
            texts[at] = _by_hand_text(task.graph, group, hand_written(group.form.source))
            taken |= hand_written(group.form.source).names
    for at, group in enumerate(schedule.groups):
        if isinstance(group.form, Templated):
            alone = task.name if sum(bool(g.region) for g in schedule.groups) == 1 else ""
            text = render_group(
                task.graph, group.nodes, group.form, taken=taken, precision=precision, whole=alone
            )
            taken |= {text.launcher, f"{text.launcher}_kernel"}
            texts[at] = text
    return dict(sorted(texts.items()))


def _by_hand_text(graph: Graph, group: Group, written: HandWritten) -> GroupText:
    """A group by hand is called as its templated form would be."""
    arguments, before = called_with(graph, group.nodes)
    return GroupText(
        written.code,
        written.launcher,
        arguments,
        outputs_of(graph, group.nodes),
        imports=written.imports,
        before=before,
    )


def called_with(graph: Graph, nodes: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tensors that a group's launcher takes, and views that are made before the call."""
    try:
        program = trace(graph, nodes)
    except Unsupported:
        sizes = {node.name for node in graph.nodes if not node.out}
        return tuple(name for name in inputs_of(graph, nodes) if name not in sizes), ()
    return tuple(program.loads), program.before


def _docstring(task: Task, schedule: Schedule, texts: dict[int, GroupText]) -> str:
    labels = [label_of(task.graph, schedule.groups[at].nodes) for at in texts]
    if not labels:
        return f'"""{task.name}: every operator calls the library."""\n'
    kernels = "one Triton kernel" if len(labels) == 1 else f"{len(labels)} Triton kernels"
    return f'"""{task.name}: {"; ".join(labels)} in {kernels}."""\n'


def _imports(task: Task, texts: dict[int, GroupText], writer: _Entry) -> str:
    lines = {"import torch"}
    if texts:
        lines |= {"import triton", "import triton.language as tl"}
    lines |= {line for text in texts.values() for line in text.imports}
    standard = {line for line in lines if line.split()[1].split(".")[0] in sys.stdlib_module_names}
    own = []
    if task.form == "module":
        own = [f"from {task.module} import {task.entry}"]
    elif writer.calls_reference:
        own = [f"from {task.module} import {task.entry} as reference_{task.entry}"]
    blocks = [sorted(standard), sorted(lines - standard), own]
    return "\n\n".join("\n".join(block) for block in blocks if block)


# Stands for the device of the call's tensors among the arguments of a node.
_DEVICE = "device of the inputs"


@dataclass
class _Entry:
    """Writes ModelNew or the function: one statement per value."""

    task: Task
    schedule: Schedule
    texts: dict[int, GroupText]
    calls_reference: bool = False
    names: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        task = self.task
        width = WIDTH - (4 if self.task.form == "function" else 8)
        statements = [line for long in self._statements() for line in wrapped(long, width)]
        body = [*self._guard(), *statements]
        parameters = [
            f"{name}={_literal(task.fixed[name])}" if name in task.fixed else name
            for name in task.arguments
        ]
        if task.form == "function":
            return [f"def {task.entry}({', '.join(parameters)}):", *indented(body)]
        method = [f"def forward({', '.join(['self', *parameters])}):", *indented(body)]
        return [
            f"class ModelNew({task.entry}):",
            f'    """{task.entry} with {self._what()}."""',
            "",
            "    @classmethod",
            "    def from_reference(cls, model):",
            '        """A ModelNew that shares the parameters and buffers of `model`."""',
            "        new = cls.__new__(cls)",
            "        new.__dict__.update(model.__dict__)",
            "        return new",
            "",
            *indented(method),
        ]

    def _what(self) -> str:
        count = len(self.texts)
        return {0: "the reference's own operators", 1: "one Triton kernel"}.get(
            count, f"{count} Triton kernels"
        )

    def _guard(self) -> list[str]:
        """Other values of fixed arguments go to the reference."""
        fixed = self.task.fixed
        if not fixed:
            return []
        other = " or ".join(_differs(name, value) for name, value in fixed.items())
        arguments = ", ".join(self.task.arguments)
        return [f"if {other}:", f"    return {self._reference()}({arguments})"]

    def _statements(self) -> list[str]:
        self._name_values()
        lines = self._constants()
        for at, group in enumerate(self.schedule.groups):
            if at in self.texts:
                before = set(self.texts[at].before)
                lines += self._library(n for n in self.task.graph.nodes if n.name in before)
                lines.append(self._launch(self.texts[at]))
            else:
                lines += self._library(self._nodes(group))
        for path, name in self.task.graph.mutations.items():
            lines.append(f"{attribute('self', path)}.copy_({self.names[name]})")
        lines.append(f"return {self._result(self.task.graph.outputs)}")
        return _joined_return(lines)

    def _constants(self) -> list[str]:
        """Small tensors that the reference makes itself."""
        return [
            f"{self.names[value.name]} = torch.tensor({list(value.values or ())!r}, "
            f"dtype=torch.{value.spec.dtype}, device={self._device()})"
            f".reshape({list(value.spec.shape)!r})"
            for value in self.task.graph.inputs
            if value.kind == "constant"
        ]

    def _device(self) -> str:
        """Where the call's tensors are."""
        for kind in ("input", "parameter", "buffer"):
            for value in self.task.graph.inputs:
                if value.kind == kind:
                    return f"{self.names[value.name]}.device"
        return '"cpu"'

    def _name_values(self) -> None:
        graph = self.task.graph
        launchers = {text.launcher for text in self.texts.values()}
        local = Names({*self.task.arguments, *launchers, "super"})
        for value in graph.inputs:
            if value.kind == "input":
                self.names[value.name] = value.target
            elif value.kind in ("parameter", "buffer"):
                self.names[value.name] = attribute("self", value.target)
            else:
                self.names[value.name] = local.fresh(value.name)
        made = [name for text in self.texts.values() for name in text.results]
        made += [name for text in self.texts.values() for name in text.before]
        for group in self.schedule.groups:
            if isinstance(group.form, Library):
                made += group.nodes
        for node in graph.nodes:
            if node.name in made and node.op != "sym":
                wanted = identifier(node.name)
                if wanted in local.taken:
                    wanted = f"{wanted}_out"
                self.names[node.name] = local.fresh(wanted)

    def _nodes(self, group: Group) -> list[Node]:
        wanted = set(group.nodes)
        return [node for node in self.task.graph.nodes if node.name in wanted]

    def _launch(self, text: GroupText) -> str:
        call = f"{text.launcher}({', '.join(self._text('%' + name) for name in text.arguments)})"
        return f"{', '.join(self.names[name] for name in text.results)} = {call}"

    def _library(self, nodes: Iterable[Node]) -> list[str]:
        """One statement a node; integers over sizes are written where they are needed."""
        return [
            f"{self.names[node.name]} = {self._call(node)}" for node in nodes if node.op != "sym"
        ]

    def _call(self, node: Node) -> str:
        if node.op == "getitem":
            return f"{self._text(node.args[0])}[{node.args[1]!r}]"
        if node.op == "opaque":
            arguments = [self._text(arg) for arg in node.args]
            arguments += [f"{name}={self._text(arg)}" for name, arg in node.kwargs.items()]
            called = attribute("self", node.module) if node.module else self._reference()
            return f"{called}({', '.join(arguments)})"
        if "device" in node.kwargs and not node_refs(node):
            kwargs = {**node.kwargs, "device": f"%{_DEVICE}"}
            node = msgspec.structs.replace(node, kwargs=kwargs)
        return library_call(node, self._text)

    def _reference(self) -> str:
        """What calls the reference as a whole."""
        self.calls_reference = True
        module = self.task.form == "module"
        return "super().forward" if module else f"reference_{self.task.entry}"

    def _text(self, arg: Arg) -> str:
        """Source of one argument of a call."""
        if isinstance(arg, str) and arg.startswith("%"):
            return self._value(arg[1:])
        if isinstance(arg, list | tuple):
            return f"[{', '.join(self._text(item) for item in arg)}]"
        return _literal(arg)

    def _value(self, name: str) -> str:
        if name == _DEVICE:
            return self._device()
        if name in self.names:
            return self.names[name]
        for value in self.task.graph.inputs:
            if value.name == name:
                return attribute("self", value.target)
        return size_expression(self.task.graph.node(name), self._text)

    def _result(self, output: Arg) -> str:
        if isinstance(output, list | tuple):
            items = ", ".join(self._result(item) for item in output)
            return f"({items},)" if len(output) == 1 else f"({items})" if output else "()"
        if isinstance(output, dict):
            items = ", ".join(f"{key!r}: {self._result(item)}" for key, item in output.items())
            return f"{{{items}}}"
        return self._text(output)


def _joined_return(lines: list[str]) -> list[str]:
    """`y = f(x); return y` as `return f(x)`."""
    if len(lines) > 1 and " = " in lines[-2]:
        name, call = lines[-2].split(" = ", 1)
        if lines[-1] == f"return {name}":
            return [*lines[:-2], f"return {call}"]
    return lines


def _differs(name: str, value: Arg) -> str:
    if value is None or isinstance(value, bool):
        return f"{name} is not {value!r}"
    return f"{name} != {_literal(value)}"


def _literal(value: Arg) -> str:
    """Source of a JSON value; torch's constants are names, infinities are floats."""
    if isinstance(value, str):
        if value.startswith("torch.") or value in ("inf", "-inf", "nan"):
            return value if value.startswith("torch.") else f'float("{value}")'
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_literal(item)}" for key, item in value.items()) + "}"
    return repr(value)
