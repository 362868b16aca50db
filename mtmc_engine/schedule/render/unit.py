"""One group on its way to a kernel and a launcher."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from mtmc_engine.schedule.render.body import Body
from mtmc_engine.schedule.render.finish import finished_text
from mtmc_engine.schedule.render.frame import Frame, mentions, used_prelude
from mtmc_engine.schedule.render.launcher import Sizes, allocation, contiguous_lines
from mtmc_engine.schedule.render.names import Names
from mtmc_engine.schedule.render.strides import lead_of, natural, permutation, stored
from mtmc_engine.schedule.templates.space import Space, depends_on, resolved, storage_axes
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
        """Reductions and scans in the kernel."""
        return [value for value in self.inside if value in self.program.folds]

    @cached_property
    def direct(self) -> dict[str, Output]:
        """Outputs that the kernel stores, by the name of the launcher's tensor."""
        after = depends_on(self.program, self.space.finished)
        found = [o for o in self.program.outputs if o.tensor.value not in after]
        only = len(self.program.outputs) == 1
        named = {self.names.tensor("out" if only else _name(o)): o for o in found}
        if not self.lead:
            return {name: stored(output) for name, output in named.items()}
        seen = natural(self.program, self.lead)
        return {
            name: replace(output, tensor=Tensor(output.tensor.value, seen.dims))
            for name, output in named.items()
        }

    @cached_property
    def lead(self) -> str:
        """The operand whose layout the results take at run time; "" where it is known before."""
        one = sum(len(block.runs) for block in self.space.blocks) == 1
        return lead_of(self.program) if one and not self.program.products else ""

    @cached_property
    def vectors(self) -> dict[Value, str]:
        """Names of the vectors whose totals the launcher computes, by total."""
        return {total: self.names.tensor(self._plural(total)) for total in self.space.finished}

    def _plural(self, total: Value) -> str:
        word = total.operands[0].word
        if not self.space.folded or not word:
            return "partials"
        return {"loss": "losses", "counted": "counts"}.get(word, f"{word}s")

    def store_all(self, body: Body) -> None:
        """Stores every direct output."""
        lead = self.program.loads[self.lead].dims if self.lead else None
        for name, output in self.direct.items():  # with a lead: one walk through memory
            dims = lead or output.tensor.dims
            body.store(replace(output, tensor=Tensor(output.tensor.value, dims)), name)


def _name(output: Output) -> str:
    """What a reader calls an output: part of a tuple has no name of its own in the graph."""
    if not output.name.startswith("getitem"):
        return output.name
    return output.tensor.value.word or "out"


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
    tuned:     lines above the kernel that choose the constants; the launch leaves them out.
    """

    grid: str
    constants: Mapping[str, str]
    options: Mapping[str, object]
    sizes: Mapping[str, str]
    setup: tuple[str, ...] = ()
    strides: Mapping[str, str] = field(default_factory=dict)
    head: tuple[str, ...] = ()
    programs: str = ""
    tuned: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelText:
    """A rendered kernel: its source, how it is launched, and the statement that launches it."""

    source: str
    launch: Launch
    statement: str
    helpers: frozenset[str]


def assemble(
    unit: Unit, frame: Frame, body: Body, launch: Launch, prologue: Sequence[str] = ()
) -> GroupText:
    """Kernel and launcher of a group as source text. prologue: statements that come first."""
    return launched(unit, [kernel_text(unit, frame, body, launch, prologue=prologue)])


def launched(unit: Unit, kernels: Sequence[KernelText]) -> GroupText:
    """The kernels of a group and the launcher that launches them in turn."""
    sources = [kernel.source for kernel in kernels]
    return GroupText(
        "\n\n\n".join([*sources, _launcher(unit, kernels)]),
        unit.label,
        tuple(unit.program.loads),
        tuple(output.name for output in unit.program.outputs),
        frozenset().union(*(kernel.helpers for kernel in kernels)),
        before=unit.program.before,
    )


def kernel_text(
    unit: Unit,
    frame: Frame,
    body: Body,
    launch: Launch,
    *,
    prologue: Sequence[str] = (),
    stage: str = "",
    between: Sequence[str] = (),
    around: Sequence[str] = (),
) -> KernelText:
    """One kernel of a group.

    stage: part of its name. between: tensors that kernels share. around: statements of which the
    last is the head of a loop around all others.
    """
    rest = shared_offsets(used_prelude(frame.prelude, body.lines), body.lines)
    if around:
        rest = [*around, *indented([*prologue, *rest])]
        prologue = ()
    lines = [short for line in (*prologue, *rest) for short in _short(line)]
    text = "\n".join(lines)
    pointers = [*unit.tensors.values(), *between, *unit.direct, *unit.vectors.values()]
    used_pointers = [name for name in pointers if mentions(text, f"{name}_ptr")]
    launch = replace(launch, sizes={**launch.sizes, **body.sizes})
    sizes = [name for name in launch.sizes if mentions(text, name)]
    parameters = [f"{name}_ptr" for name in used_pointers] + sizes + list(launch.strides)
    constants = {name: size for name, size in launch.constants.items() if mentions(text, name)}
    parameters += [f"{name}: tl.constexpr" for name in constants]
    head = signature(f"def {unit.label}{stage}_kernel", parameters)
    kernel = "\n".join([*launch.tuned, "@triton.jit", *head, *indented(lines)])
    call = [*used_pointers, *sizes, *launch.strides.values()]
    call += [f"{name}={size}" for name, size in constants.items() if not launch.tuned]
    call += [f"{name}={value}" for name, value in launch.options.items()]
    statement = f"{unit.label}{stage}_kernel[{launch.grid}]({', '.join(call)})"
    return KernelText(kernel, launch, statement, frozenset(body.helpers))


def _short(line: str) -> list[str]:
    """A kernel's statement on as many lines as it needs."""
    plain = line.lstrip(" ")
    indent = line[: len(line) - len(plain)]
    return [indent + part for part in wrapped(plain, WIDTH - 4 - len(indent))]


def _launcher(unit: Unit, kernels: Sequence[KernelText]) -> str:
    sizes = Sizes(unit.program, unit.tensors)
    parameters = [f"{name}: torch.Tensor" for name in unit.tensors.values()]
    count = len(unit.program.outputs)
    result = "torch.Tensor" if count == 1 else f"tuple[{', '.join(['torch.Tensor'] * count)}]"
    allocations = _operands_and_outputs(unit, sizes)
    allocations += _vector_allocations(unit, kernels[-1].launch, sizes)
    returned = _returned(unit, sizes)
    first = next(iter([*unit.direct, *unit.vectors.values()]))
    rest = []
    for kernel in kernels:
        rest += [*kernel.launch.setup, *wrapped(kernel.statement, WIDTH - 4)]
    needed = "\n".join(rest)
    matrices = [unit.tensors[n] for n, t in unit.program.loads.items() if len(t.dims) == 2]
    texts = {name: text for kernel in kernels for name, text in kernel.launch.sizes.items()}
    named = size_lines({n: t for n, t in texts.items() if mentions(needed, n)}, matrices)
    lines = [
        f'"""{unit.summary}"""',
        *(line for kernel in kernels for line in kernel.launch.head),
        *(part for line in allocations for part in wrapped(line, WIDTH - 4)),
        f"if {first}.numel() == 0:",
        f"    return {returned}",
        *named,
        *rest,
        f"return {returned}",
    ]
    head = signature(f"def {unit.label}", parameters, f" -> {result}")
    return "\n".join([*head, *indented(lines)])


def _operands_and_outputs(unit: Unit, sizes: Sizes) -> list[str]:
    """Statements that make the operands dense and allocate the outputs."""
    if not unit.lead:
        allocations = [allocation(output, sizes, name) for name, output in unit.direct.items()]
        return [*contiguous_lines(unit.program, unit.tensors), *allocations]
    dtypes = {name: unit.program.specs[name].dtype for name in unit.program.loads}
    lead = dtypes[unit.lead]
    lines = [
        f"{name} = torch.empty_like({unit.tensors[unit.lead]}{_as(output.spec.dtype, lead)})"
        for name, output in unit.direct.items()
    ]
    lines.append("# The kernel walks through memory: every operand has to lie as the result does.")
    first, output = next(iter(unit.direct.items()))
    for load, tensor in unit.program.loads.items():
        if storage_axes(tensor):
            name = unit.tensors[load]
            like = f"torch.empty_like({first}{_as(dtypes[load], output.spec.dtype)})"
            lines.append(f"if {name}.stride() != {first}.stride():")
            lines.append(f"    {name} = {like}.copy_({name})")
    return lines


def _as(dtype: str, known: str) -> str:
    return "" if dtype == known else f", dtype=torch.{dtype}"


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
    """A statement on lines of their own for a call's arguments, or for a sum, where it is long."""
    opening = _opening(statement)
    if len(statement) <= width:
        return [statement]
    if opening is None:
        name, _, text = statement.partition(" = ")
        return [f"{name} = (", f"    {text}", ")"] if name.isidentifier() else [statement]
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
