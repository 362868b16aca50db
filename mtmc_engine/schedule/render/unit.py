"""One group on its way to a kernel and a launcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.frame import Frame, mentions, used_prelude
from mtmc_engine.schedule.render.launcher import Sizes, allocation, contiguous_lines
from mtmc_engine.schedule.render.names import Names
from mtmc_engine.schedule.templates.space import Space, depends_on, resolved
from mtmc_engine.schedule.templates.tensors import Tensor, Value
from mtmc_engine.schedule.templates.trace import Output, Trace

WIDTH = 100


@dataclass(frozen=True)
class GroupText:
    """A rendered group.

    source:    kernels and launcher.
    launcher:  the function to call; it takes the graph values `arguments` in order and returns
               the graph values `results`, one alone or a tuple.
    helpers:   device functions of this tool's own that the kernels call.
    imports:   import statements beyond torch and Triton.
    """

    source: str
    launcher: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    helpers: frozenset[str] = frozenset()
    imports: tuple[str, ...] = ()


@dataclass
class Unit:
    """A group with its names.

    label:   what the launcher is called; the kernel is `label`_kernel.
    summary: the launcher's docstring.
    tensors: parameter names of the operands by graph value.
    names:   names in the kernel; `outer_names` those in the launcher.
    """

    label: str
    summary: str
    program: Trace
    space: Space
    tensors: Mapping[str, str]
    names: Names
    stored: list[tuple[str, Output]] = field(default_factory=list)

    @property
    def after(self) -> set[Value]:
        """Values that the launcher computes from the kernel's results."""
        return depends_on(self.program, self.space.finished)

    @property
    def inside(self) -> list[Value]:
        """Values that the kernel computes."""
        after = self.after
        return [v for v in self.program.values if v not in after and self._feeds_kernel(v, after)]

    def _feeds_kernel(self, value: Value, after: set[Value]) -> bool:
        readers = [v for v in self.program.values if value in v.operands]
        if value.kind != "count" or not readers:
            return True
        return any(reader not in after for reader in readers)

    @property
    def folds(self) -> list[Value]:
        return [v for v in self.inside if v.kind == "reduce"]

    def outputs(self) -> list[tuple[str, Output]]:
        """(name, output) of everything that the kernel stores."""
        after = self.after
        direct = [o for o in self.program.outputs if o.tensor.value not in after]
        if not self.stored:
            for output in direct:
                name = "out" if len(direct) == 1 and not self.space.finished else output.name
                self.stored.append((self.names.fresh(name), output))
            for total in self.space.finished:
                self.stored.append(self._vector(total))
        return self.stored

    def _vector(self, total: Value) -> tuple[str, Output]:
        """Per-row values that the launcher folds by itself."""
        operand = total.operands[0]
        axes = resolved(operand.axes)
        hint = operand.hint or "partial"
        name = self.names.fresh(f"{hint}s" if not hint.endswith("s") else f"{hint}_rows")
        spec = TensorSpec((0,), operand.dtype)
        return name, Output(name, Tensor(operand, (axes,)), spec)

    def store_all(self, body: Body) -> None:
        for name, output in self.outputs():
            body.store(output, name)


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched.

    grid:      expression of the grid.
    constants: constexpr name -> expression.
    options:   num_warps and the like.
    setup:     statements before the launch, after the outputs are allocated.
    """

    grid: str
    constants: Mapping[str, str]
    options: Mapping[str, object]
    sizes: Mapping[str, str]
    setup: tuple[str, ...] = ()


def assemble(unit: Unit, frame: Frame, body: Body, launch: Launch) -> GroupText:
    """Kernel and launcher of a group as source text."""
    lines = shared_offsets(used_prelude(frame.prelude, body.lines), body.lines)
    text = "\n".join(lines)
    pointers = [*unit.tensors.values(), *(name for name, _ in unit.outputs())]
    used_pointers = [name for name in pointers if mentions(text, f"{name}_ptr")]
    sizes = [name for name in launch.sizes if mentions(text, name)]
    parameters = [f"{name}_ptr" for name in used_pointers] + sizes
    parameters += [f"{name}: tl.constexpr" for name in launch.constants]
    kernel = "\n".join(
        ["@triton.jit", *signature(f"def {unit.label}_kernel", parameters), *indented(lines)]
    )
    call = [*used_pointers, *sizes]
    call += [f"{name}={text}" for name, text in launch.constants.items()]
    call += [f"{name}={value}" for name, value in launch.options.items()]
    launcher = _launcher(unit, launch, f"{unit.label}_kernel[{launch.grid}]", call)
    return GroupText(
        f"{kernel}\n\n\n{launcher}",
        unit.label,
        tuple(unit.program.loads),
        tuple(output.name for output in unit.program.outputs),
        frozenset(body.helpers),
    )


def _launcher(unit: Unit, launch: Launch, kernel: str, call: list[str]) -> str:
    sizes = Sizes(unit.program, unit.tensors)
    outputs = unit.outputs()
    parameters = [f"{name}: torch.Tensor" for name in unit.tensors.values()]
    count = len(unit.program.outputs)
    result = "torch.Tensor" if count == 1 else f"tuple[{', '.join(['torch.Tensor'] * count)}]"
    allocations = [allocation(output, sizes, name) for name, output in outputs]
    returned = ", ".join(name for name, _ in outputs)
    first = outputs[0][0]
    early = [f"if {first}.numel() == 0:", f"    return {returned}"]
    launch_lines = wrapped_call(kernel, call)
    rest = [*launch.setup, *launch_lines]
    needed = "\n".join([*rest, *allocations])
    named = size_lines({n: t for n, t in launch.sizes.items() if mentions(needed, n)})
    lines = [
        f'"""{unit.summary}"""',
        *contiguous_lines(unit.program, unit.tensors),
        *allocations,
        *early,
        *named,
        *rest,
        f"return {returned}",
    ]
    head = signature(f"def {unit.label}", parameters, f" -> {result}")
    return "\n".join([*head, *indented(lines)])


def size_lines(sizes: Mapping[str, str]) -> list[str]:
    """One statement per size; the two of a matrix in one."""
    tensors = {text.split(".")[0] for text in sizes.values()}
    texts = list(sizes.values())
    if len(tensors) == 1 and texts == [f"{min(tensors)}.shape[{at}]" for at in (0, -1)]:
        return [f"{', '.join(sizes)} = {min(tensors)}.shape"]
    return [f"{name} = {text}" for name, text in sizes.items()]


def signature(head: str, parameters: list[str], result: str = "") -> list[str]:
    """The lines of a function's head, on one line where it fits."""
    line = f"{head}({', '.join(parameters)}){result}:"
    if len(line) <= WIDTH:
        return [line]
    return [f"{head}(", *(f"    {parameter}," for parameter in parameters), f"){result}:"]


def wrapped_call(function: str, arguments: list[str]) -> list[str]:
    """A call as a statement inside a function, on one line where it fits."""
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= WIDTH - 4:
        return [line]
    joined = ", ".join(arguments)
    if len(joined) <= WIDTH - 8:
        return [f"{function}(", f"    {joined}", ")"]
    return [f"{function}(", *(f"    {argument}," for argument in arguments), ")"]


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def shared_offsets(prelude: list[str], body: list[str]) -> list[str]:
    """Names the pointer offset that several loads and stores share."""
    counts: dict[str, int] = {}
    for line in body:
        for offset in _offsets(line):
            counts[offset] = counts.get(offset, 0) + 1
    shared = [offset for offset, count in counts.items() if count > 1 and " " in offset]
    lines, body = list(prelude), list(body)
    for at, offset in enumerate(sorted(shared, key=len, reverse=True)):
        name = "offsets" if at == 0 else f"offsets_{at + 1}"
        lines.append(f"{name} = {offset}")
        body = [line.replace(f"_ptr + {offset}", f"_ptr + {name}") for line in body]
    return lines + body


def _offsets(line: str) -> list[str]:
    """Offsets added to pointers in a statement."""
    found = []
    for part in line.split("_ptr + ")[1:]:
        depth, end = 0, len(part)
        for at, char in enumerate(part):
            depth += (char == "(") - (char == ")")
            if depth < 0 or (depth == 0 and char == ","):
                end = at
                break
        found.append(part[:end])
    return found
