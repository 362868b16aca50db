"""One group on its way to a kernel and a launcher."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.finish import finished_text
from mtmc_engine.schedule.render.frame import Frame, mentions, used_prelude
from mtmc_engine.schedule.render.launcher import Sizes, allocation, contiguous_lines
from mtmc_engine.schedule.render.names import Names
from mtmc_engine.schedule.render.strides import permutation, stored
from mtmc_engine.schedule.templates.space import Space, depends_on, resolved
from mtmc_engine.schedule.templates.tensors import Value
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
    before:    views among the group's nodes that the library makes first.
    """

    source: str
    launcher: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    helpers: frozenset[str] = frozenset()
    imports: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


@dataclass
class Unit:
    """A group with its names.

    label:   what the launcher is called; the kernel is `label`_kernel.
    summary: the launcher's docstring.
    tensors: parameter names of the operands by graph value.
    names:   taken names, in kernel and launcher alike.
    """

    label: str
    summary: str
    program: Trace
    space: Space
    tensors: Mapping[str, str]
    names: Names

    @cached_property
    def inside(self) -> list[Value]:
        """Values that the kernel computes: what its stores need."""
        after = depends_on(self.program, self.space.finished)
        needed = {o.tensor.value for o in self.program.outputs} - after
        needed |= {total.operands[0] for total in self.space.finished}
        for value in reversed(self.program.values):
            if value in needed:
                needed.update(value.operands)
        return [value for value in self.program.values if value in needed]

    @property
    def folds(self) -> list[Value]:
        """Reductions in the kernel."""
        return [value for value in self.inside if value.kind == "reduce"]

    @cached_property
    def direct(self) -> dict[str, Output]:
        """Outputs that the kernel stores, by the name of the launcher's tensor."""
        after = depends_on(self.program, self.space.finished)
        found = [o for o in self.program.outputs if o.tensor.value not in after]
        only = len(self.program.outputs) == 1
        named = {self.names.fresh("out" if only else o.name): o for o in found}
        return named if self.space.folded else {name: stored(o) for name, o in named.items()}

    @cached_property
    def vectors(self) -> dict[Value, str]:
        """Names of the vectors whose totals the launcher computes, by total."""
        return {total: self.names.fresh(self._plural(total)) for total in self.space.finished}

    def _plural(self, total: Value) -> str:
        word = total.operands[0].word
        if not self.space.folded or not word:
            return "partials"
        return {"loss": "losses", "counted": "counts"}.get(word, f"{word}s")

    def store_all(self, body: Body) -> None:
        """Stores every direct output."""
        for name, output in self.direct.items():
            body.store(output, name)


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched.

    grid:      expression of the grid.
    constants: constexpr name -> expression.
    options:   num_warps and the like.
    sizes:     name -> expression of the sizes that kernel or launch may need.
    setup:     statements before the launch, after the outputs are allocated.
    strides:   kernel argument -> expression, all of them passed.
    head:      statements at the top of the launcher: the constants to tune.
    programs:  number of programs, where each stores one partial result.
    """

    grid: str
    constants: Mapping[str, str]
    options: Mapping[str, object]
    sizes: Mapping[str, str]
    setup: tuple[str, ...] = ()
    strides: Mapping[str, str] = field(default_factory=dict)
    head: tuple[str, ...] = ()
    programs: str = ""


def assemble(
    unit: Unit, frame: Frame, body: Body, launch: Launch, prologue: Sequence[str] = ()
) -> GroupText:
    """Kernel and launcher of a group as source text. prologue: statements that come first."""
    rest = shared_offsets(used_prelude(frame.prelude, body.lines), body.lines)
    lines = [*prologue, *rest]
    text = "\n".join(lines)
    pointers = [*unit.tensors.values(), *unit.direct, *unit.vectors.values()]
    used_pointers = [name for name in pointers if mentions(text, f"{name}_ptr")]
    sizes = [name for name in launch.sizes if mentions(text, name)]
    parameters = [f"{name}_ptr" for name in used_pointers] + sizes + list(launch.strides)
    parameters += [f"{name}: tl.constexpr" for name in launch.constants]
    kernel = "\n".join(
        ["@triton.jit", *signature(f"def {unit.label}_kernel", parameters), *indented(lines)]
    )
    call = [*used_pointers, *sizes, *launch.strides.values()]
    call += [f"{name}={text}" for name, text in launch.constants.items()]
    call += [f"{name}={value}" for name, value in launch.options.items()]
    launcher = _launcher(unit, launch, f"{unit.label}_kernel[{launch.grid}]", call)
    return GroupText(
        f"{kernel}\n\n\n{launcher}",
        unit.label,
        tuple(unit.program.loads),
        tuple(output.name for output in unit.program.outputs),
        frozenset(body.helpers),
        before=unit.program.before,
    )


def _launcher(unit: Unit, launch: Launch, kernel: str, call: list[str]) -> str:
    sizes = Sizes(unit.program, unit.tensors)
    parameters = [f"{name}: torch.Tensor" for name in unit.tensors.values()]
    count = len(unit.program.outputs)
    result = "torch.Tensor" if count == 1 else f"tuple[{', '.join(['torch.Tensor'] * count)}]"
    allocations = [allocation(output, sizes, name) for name, output in unit.direct.items()]
    allocations += _vector_allocations(unit, launch, sizes)
    returned = _returned(unit, sizes)
    first = next(iter([*unit.direct, *unit.vectors.values()]))
    rest = [*launch.setup, *wrapped(f"{kernel}({', '.join(call)})", WIDTH - 4)]
    needed = "\n".join(rest)
    matrices = [unit.tensors[n] for n, t in unit.program.loads.items() if len(t.dims) == 2]
    named = size_lines({n: t for n, t in launch.sizes.items() if mentions(needed, n)}, matrices)
    lines = [
        f'"""{unit.summary}"""',
        *launch.head,
        *contiguous_lines(unit.program, unit.tensors),
        *allocations,
        f"if {first}.numel() == 0:",
        f"    return {returned}",
        *named,
        *rest,
        f"return {returned}",
    ]
    head = signature(f"def {unit.label}", parameters, f" -> {result}")
    return "\n".join([*head, *indented(lines)])


def _vector_allocations(unit: Unit, launch: Launch, sizes: Sizes) -> list[str]:
    like = next(iter(unit.tensors.values()))
    lines = []
    for total, name in unit.vectors.items():
        operand = total.operands[0]
        length = launch.programs or sizes.of(resolved(operand.axes))
        lines.append(f"{name} = {like}.new_empty({length}, dtype=torch.{operand.dtype})")
    return lines


def _returned(unit: Unit, sizes: Sizes) -> str:
    """What the launcher returns, in the order of the group's outputs."""
    seen = {output.name: output.tensor for output in unit.program.outputs}
    names = {
        output.name: f"{name}{permutation(output.tensor, seen[output.name])}"
        for name, output in unit.direct.items()
    }
    return ", ".join(
        names.get(output.name) or finished_text(output, unit.vectors, sizes)
        for output in unit.program.outputs
    )


def size_lines(sizes: Mapping[str, str], matrices: Collection[str]) -> list[str]:
    """One statement per size; the two of a matrix in one. matrices: names of 2-D tensors."""
    lines: list[str] = []
    left = dict(sizes)
    for name, text in sizes.items():
        tensor = text.removesuffix(".shape[0]")
        other = next((n for n, t in left.items() if t == f"{tensor}.shape[-1]"), None)
        if name in left and text.endswith(".shape[0]") and other in left and tensor in matrices:
            lines.append(f"{name}, {other} = {tensor}.shape")
            del left[name], left[other]
    return lines + [f"{name} = {text}" for name, text in left.items()]


def signature(head: str, parameters: list[str], result: str = "") -> list[str]:
    """The lines of a function's head, on one line where it fits."""
    line = f"{head}({', '.join(parameters)}){result}:"
    if len(line) <= WIDTH:
        return [line]
    return [f"{head}(", *(f"    {parameter}," for parameter in parameters), f"){result}:"]


def wrapped(statement: str, width: int) -> list[str]:
    """A statement that ends in a call, its arguments on lines of their own where it is long."""
    opening = _opening(statement)
    if len(statement) <= width or opening is None:
        return [statement]
    head, arguments = statement[: opening + 1], statement[opening + 1 : -1]
    if len(arguments) <= width - 4:
        return [head, f"    {arguments}", ")"]
    return [head, *(f"    {argument}," for argument in _split(arguments)), ")"]


def _opening(statement: str) -> int | None:
    """Where the bracket opens that the statement's last character closes."""
    depth = 0
    for at in range(len(statement) - 1, -1, -1):
        depth += (statement[at] in ")]}") - (statement[at] in "([{")
        if depth == 0:
            return at if statement[at] == "(" and statement.endswith(")") else None
    return None


def _split(arguments: str) -> list[str]:
    """Arguments of a call, split at the commas outside of brackets."""
    found, depth, start = [], 0, 0
    for at, char in enumerate(arguments):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            found.append(arguments[start:at].strip())
            start = at + 1
    return [*found, arguments[start:].strip()]


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def shared_offsets(prelude: list[str], body: list[str], wanted: str = "offsets") -> list[str]:
    """Names the pointer offset that several loads and stores share; loops see to their own."""
    counts: dict[str, int] = {}
    for line in body:
        if line.startswith(" "):
            continue
        for offset in _offsets(line):
            counts[offset] = counts.get(offset, 0) + 1
    shared = [offset for offset, count in counts.items() if count > 1 and " " in offset]
    lines, body = list(prelude), list(body)
    for at, offset in enumerate(sorted(shared, key=len, reverse=True)):
        name = wanted if at == 0 else f"{wanted}_{at + 1}"
        lines.append(f"{name} = {offset}")
        body = [
            line if line.startswith(" ") else line.replace(f"_ptr + {offset}", f"_ptr + {name}")
            for line in body
        ]
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
