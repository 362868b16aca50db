"""A whole program: imports, kernels, launchers and the entry that calls them."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from mtmc_engine.core.graph import Arg, Container, Graph, Node, node_refs, refs
from mtmc_engine.core.program import ByHand, Group, Library, Schedule, Templated
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.algebra import rewritten
from mtmc_engine.schedule.flow import inputs_of, outputs_of
from mtmc_engine.schedule.labels import label_of
from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.render.by_hand import HandWritten, hand_written
from mtmc_engine.schedule.render.group import render_group
from mtmc_engine.schedule.render.helpers import HELPERS
from mtmc_engine.schedule.render.library import batch_norm_call, library_call, size_expression
from mtmc_engine.schedule.render.names import Names, attribute, identifier
from mtmc_engine.schedule.render.prepared import Prepared
from mtmc_engine.schedule.render.signature import (
    NEEDED,
    OBJECT,
    differs,
    literal,
    passed_text,
    plain_text,
    renamed_target,
    signature_text,
)
from mtmc_engine.schedule.render.unit import WIDTH, GroupText, indented, wrapped
from mtmc_engine.schedule.templates.trace import trace


def render(task: Task, schedule: Schedule) -> str:
    """The program's source: a Python module that imports the user's own file and nothing else.

    Groups by hand keep their source as it is; one that holds the entry itself is the module.
    Raises Unsupported where a templated group does not fit its template.
    """
    task = msgspec.structs.replace(task, graph=rewritten(task.graph, schedule.rewrites))
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
        own = _without_clash(source, helpers, entry)
        blocks += ["", own.rstrip("\n"), ""]
    blocks += ["", *body]
    return "\n".join(blocks).replace("\n\n\n\n", "\n\n\n") + "\n"


def _without_clash(source: str, helpers: Sequence[str], entry: str) -> str:
    """The source with the device function renamed that has the entry's own name."""
    if entry not in helpers:
        return source
    return re.sub(rf"(?<![\w.]){entry}\(", f"{entry}_of(", source)


def entry_name(task: Task) -> str:
    """What the program defines: ModelNew, or a function of the reference's or launcher's name."""
    return task.defines


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
            alone = task.operator if sum(bool(g.region) for g in schedule.groups) == 1 else ""
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
        return f'"""{task.operator}: every operator calls the library."""\n'
    kernels = "one Triton kernel" if len(labels) == 1 else f"{len(labels)} Triton kernels"
    return f'"""{task.operator}: {"; ".join(labels)} in {kernels}."""\n'


def _imports(task: Task, texts: dict[int, GroupText], writer: _Entry) -> str:
    lines = {"import torch"}
    if texts:
        lines |= {"import triton", "import triton.language as tl"}
    lines |= {line for text in texts.values() for line in text.imports}
    lines |= {line for line in writer.classes.values() if line and not _is_of(line, task.module)}
    standard = {line for line in lines if line.split()[1].split(".")[0] in sys.stdlib_module_names}
    own = []
    if task.form == "module":
        own = [f"from {task.module} import {task.entry}"]
    elif writer.calls_reference:
        own = [f"from {task.module} import {task.entry} as {writer.reference}"]
    own += [line for line in writer.classes.values() if line and _is_of(line, task.module)]
    blocks = [sorted(standard), sorted(lines - standard), own]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _is_of(line: str, module: str) -> bool:
    return line.startswith(f"from {module} import ")


_TRAINED_NORM = "aten._native_batch_norm_legit_functional.default"

# Stands for the device of the call's tensors among the arguments of a node.
_DEVICE = "device of the inputs"


@dataclass
class _Entry:
    """Writes ModelNew or the function: one statement per value.

    names:   source of each value, by graph name. classes: import of each class of the result, by
             the name that it has here. called: source of each class by its type.
    renamed: what arguments are called inside, whose names the code needs for something else.
    """

    task: Task
    schedule: Schedule
    texts: dict[int, GroupText]
    calls_reference: bool = False
    names: dict[str, str] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        task = self.task
        launchers = {text.launcher for text in self.texts.values()}
        self.module_names = Names({*launchers, *task.arguments, task.entry, entry_name(task)})
        self.local = Names({*launchers, *task.arguments, task.entry, entry_name(task), "super"})
        self.reference = self.module_names.fresh(f"reference_{task.entry}")
        clashing = [name for name in task.arguments if name in NEEDED | launchers | {task.entry}]
        self.renamed = {name: self.local.fresh(f"{name}_argument") for name in clashing}
        self.inner = self.module_names.fresh("run_" + entry_name(task).lower())
        self.returned = iter(task.graph.containers)
        self.prepared = Prepared(task.graph)

    def lines(self) -> list[str]:
        task = self.task
        method = task.form == "module"
        width = WIDTH - (8 if method and not self.renamed else 4)
        statements = [line for long in self._statements() for line in wrapped(long, width)]
        body = [*self._guard(), *statements]
        parameters = signature_text(task, self._defaults())
        before: list[str] = []
        if self.renamed:  # the code needs names that the arguments have
            own = "self, " if method else ""
            before = [f"def {self.inner}({own}{plain_text(task, self.renamed)}):"]
            before += [*indented(body), "", ""]
            body = [f"return {self.inner}({own}{plain_text(task)})"]
        if not method:
            return [*before, f"def {task.entry}({parameters}):", *indented(body)]
        own = f"self, {parameters}" if parameters else "self"
        forward = [f"def forward({own}):", *indented(body)]
        return [
            *before,
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
            *indented(self.prepared.method()),
            *indented(forward),
        ]

    def _defaults(self) -> str:
        """The function that holds defaults which cannot be written down."""
        if self.task.form == "module":
            return f"{self.task.entry}.forward"
        self.calls_reference |= any(p.default == OBJECT for p in self.task.parameters)
        return self.reference

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
        other = " or ".join(
            differs(renamed_target(name, self.renamed), value, literal(value))
            for name, value in fixed.items()
        )
        arguments = passed_text(self.task, self.renamed)
        return [f"if {other}:", f"    return {self._reference()}({arguments})"]

    def _statements(self) -> list[str]:
        self._name_values()
        lines = [*self.prepared.statement(self.names), *self._constants()]
        needed = self._needed()
        for at, group in enumerate(self.schedule.groups):
            if at in self.texts:
                before = set(self.texts[at].before)
                lines += self._library(n for n in self.task.graph.nodes if n.name in before)
                lines.append(self._launch(self.texts[at]))
            else:
                lines += self._library(n for n in self._nodes(group) if n.name in needed)
        for path, name in self.task.graph.mutations.items():
            lines.append(f"{attribute('self', path)}.copy_({self.names[name]})")
        lines.append(f"return {self._result(self.task.graph.outputs)}")
        return _joined_return(lines)

    def _needed(self) -> set[str]:
        """Values that something reads: kernels read what views and constants are made from."""
        graph = self.task.graph
        needed = {*refs(graph.outputs), *graph.mutations.values()}
        for at, group in reversed([*enumerate(self.schedule.groups)]):
            before = set(group.nodes)
            if at in self.texts:
                needed.update(self.texts[at].arguments)
                before = set(self.texts[at].before)
            for node in reversed(graph.nodes):
                if node.name in before and (group.region or node.name in needed):
                    needed.update([node.name, *node_refs(node)])
        return needed

    def _constants(self) -> list[str]:
        """Small tensors that the reference makes itself."""
        return [
            f"{self.names[value.name]} = torch.tensor({literal(value.values or ())}, "
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
        graph, local = self.task.graph, self.local
        self._name_classes()
        for value in graph.inputs:
            if value.kind == "input":
                self.names[value.name] = renamed_target(value.target, self.renamed)
            elif value.kind in ("parameter", "buffer"):
                self.names[value.name] = attribute("self", value.target)
            else:  # a constant, or what is prepared
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

    def _name_classes(self) -> None:
        """Imports the classes that the result is made of, each under a name of its own."""
        for container in self.task.graph.containers:
            module, _, path = container.type.partition(":")
            if not path or container.type in self.called:
                continue
            if module == "torch" or module.startswith("torch."):
                self.called[container.type] = f"{module}.{path}"
                continue
            outer, *inner = path.split(".")
            own = (self.task.module, self.task.entry)
            if self.task.form == "module" and (module, outer) == own:
                self.called[container.type] = path
                continue
            name = self.module_names.fresh(outer)
            self.local.taken.add(name)
            alias = "" if name == outer else f" as {name}"
            self.classes[name] = f"from {module} import {outer}{alias}"
            self.called[container.type] = ".".join([name, *inner])

    def _nodes(self, group: Group) -> list[Node]:
        wanted = set(group.nodes)
        return [node for node in self.task.graph.nodes if node.name in wanted]

    def _launch(self, text: GroupText) -> str:
        call = f"{text.launcher}({', '.join(self._text('%' + name) for name in text.arguments)})"
        return f"{', '.join(self.names[name] for name in text.results)} = {call}"

    def _library(self, nodes: Iterable[Node]) -> list[str]:
        """One statement a node; integers over sizes are written where they are needed."""
        lines: list[str] = []
        taken: set[str] = set()
        for node in nodes:
            if node.op == _TRAINED_NORM and (parts := self._parts(node)) is not None:
                lines += self._batch_norm(node, parts)
                taken |= {part.name for part in parts.values()}
            elif node.op != "sym" and node.name not in taken:
                lines.append(f"{self.names[node.name]} = {self._call(node)}")
        return lines

    def _parts(self, node: Node) -> dict[int, Node] | None:
        """Results of a batch norm by their place; None where its saved statistics are read."""
        readers = [n for n in self.task.graph.nodes if node.name in node_refs(n)]
        parts = {n.args[1]: n for n in readers if n.op == "getitem"}
        return parts if len(parts) == len(readers) and set(parts) <= {0, 3, 4} else None

    def _batch_norm(self, node: Node, parts: dict[int, Node]) -> list[str]:
        """Copies of the running statistics, and the call that moves them on."""
        copies = []
        for place, wanted in ((3, "running_mean"), (4, "running_var")):
            name = self.local.fresh(wanted)
            copies.append((name, self._text(node.args[place])))
            if place in parts:
                self.names[parts[place].name] = name
        call = batch_norm_call(node, self._text, copies[0][0], copies[1][0])
        result = self.local.fresh("normalised")
        if 0 in parts:
            self.names[parts[0].name] = result
        return [*(f"{name} = {text}.clone()" for name, text in copies), f"{result} = {call}"]

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
        if self.task.form == "function":
            return self.reference
        return "super(ModelNew, self).forward" if self.renamed else "super().forward"

    def _text(self, arg: Arg) -> str:
        """Source of one argument of a call."""
        if isinstance(arg, str) and arg.startswith("%"):
            return self._value(arg[1:])
        if isinstance(arg, list | tuple):
            return f"[{', '.join(self._text(item) for item in arg)}]"
        return literal(arg)

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
        """Source of the result or of a part of it, with the classes that the reference uses."""
        if not isinstance(output, list | tuple | dict):
            return self._text(output)
        container = next(self.returned, Container("tuple"))
        if isinstance(output, dict):
            pairs = (f"{key!r}: {self._result(item)}" for key, item in output.items())
            return f"{{{', '.join(pairs)}}}"
        items = [self._result(item) for item in output]
        named = self.called.get(container.type, "")
        if container.made == "fields":
            pairs = (f"{key}={item}" for key, item in zip(container.keys, items, strict=True))
            return f"{named}({', '.join(pairs)})"
        if container.made == "mapping":
            pairs = (f"{key!r}: {item}" for key, item in zip(container.keys, items, strict=True))
            mapping = f"{{{', '.join(pairs)}}}"
            return f"{named}({mapping})" if named else mapping
        if container.type == "list":
            return f"[{', '.join(items)}]"
        sequence = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        return f"{named}({sequence})" if named else sequence


def _joined_return(lines: list[str]) -> list[str]:
    """`y = f(x); return y` as `return f(x)`."""
    if len(lines) > 1 and " = " in lines[-2]:
        name, call = lines[-2].split(" = ", 1)
        if lines[-1] == f"return {name}":
            return [*lines[:-2], f"return {call}"]
    return lines
