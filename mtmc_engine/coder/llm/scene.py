"""What surrounds a step, in words: the card, the installed versions, the task, the region."""

from __future__ import annotations

from mtmc_engine.capture.source import read_source
from mtmc_engine.coder.llm.quoting import quoted
from mtmc_engine.coder.top_level import TopLevel
from mtmc_engine.core.action import Action
from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.graph import Graph, TensorSpec
from mtmc_engine.core.program import Group, Library, Program
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.algebra import rewritten
from mtmc_engine.schedule.labels import label_of
from mtmc_engine.schedule.render.module import entry_name
from mtmc_engine.system.compat import triton_differences, version

# Of a longer file only what the reference needs is shown; so of one that holds kernels too.
_MOST_REFERENCE_CHARACTERS = 12_000
_MOST_REGIONS = 40


def machine_text(card: DeviceCard) -> str:
    """The card and the installed versions: the same for every step of a session."""
    tflops = ", ".join(f"{mode} {value:g}" for mode, value in sorted(card.tflops.items()))
    here = (
        "It is in this machine."
        if card.present
        else "It is not in this machine: kernels are compiled for it, and their values checked by "
        "Triton's interpreter."
    )
    triton = version("triton")
    notes = "\n".join(f"- {note}" for note in triton_differences(triton))
    return (
        f"The card\n{card.name}, sm_{card.arch}: {card.sms} multiprocessors, "
        f"{card.bandwidth_gbs:g} GB/s, {tflops} TFLOP/s, {card.shared_bytes} bytes of shared "
        f"memory per program, {card.l2_bytes // 1_000_000} MB of L2, "
        f"{card.registers_per_sm} registers per multiprocessor. {here}\n\n"
        f"Installed: torch {version('torch')}, triton {triton}\n{notes}"
    )


def reference_text(task: Task) -> str:
    """The user's operator, its inputs and its policies. Raises UsageError where it is gone."""
    text = read_source(task.reference or task.file).text
    if task.program or len(text) > _MOST_REFERENCE_CHARACTERS:
        text = _needed(text, task.entry)
    lines = ["# The reference", quoted("reference", text)]
    kind = "module" if task.form == "module" else "function"
    lines.append(
        f"It is the {kind} {task.entry} of {task.module}; its program defines {entry_name(task)}."
    )
    if task.program:
        lines.append(
            "The program is a version of the user's own file: keep its imports, its reference and "
            "the functions that the step does not name."
        )
    for inputs in task.inputs:
        lines.append(f"Inputs: {', '.join(map(_tensor, inputs.tensors))}.")
    if task.vary:
        names = ", ".join(f"dimension {dim} of input {at}" for at, dim in task.vary)
        lines.append(f"May vary from call to call: {names}.")
    return "\n".join([*lines, *_policies(task)])


def _needed(text: str, entry: str) -> str:
    """The entry's definition with all that it needs; the whole text where it has none."""
    module = TopLevel.of(text)
    return module.group_text(entry, frozenset()) if entry in module.named else text


def _policies(task: Task) -> list[str]:
    policy, lines = task.policy, []
    tf32 = task.tf32 or policy.precision == "tf32"
    mode = "tf32 is allowed for products of float32" if tf32 else 'input_precision="ieee"'
    lines.append(f"Precision: {mode}.")
    if policy.inplace:
        lines.append("It works in place: it writes to its inputs as the reference does.")
    if task.graph.mutations:
        lines.append(f"A call updates the buffers {', '.join(task.graph.mutations)}.")
    if policy.library != "allow":
        least = "no library call is allowed" if policy.library == "forbid" else ""
        lines.append(f"Library: {least or f'own kernels need {policy.library:.0%} of the time'}.")
    return lines


def _tensor(spec: TensorSpec) -> str:
    return f"{spec.dtype} {'x'.join(map(str, spec.shape)) or 'scalar'}"


def step_text(task: Task, program: Program, action: Action) -> str:
    """The step, and the regions that it acts on."""
    lines = ["# The step", f"{action.phrase}"]
    if action.params:
        changes = ", ".join(f"{name} = {value}" for name, value in action.params.items())
        lines.append(f"Parameters: {changes}.")
    if action.reason:
        lines.append(f"Why: {action.reason}")
    named = {action.region, action.other} - {""}
    described = _described(task, program)
    for name, words in list(described.items())[:_MOST_REGIONS]:
        lines.append(f"- {'acts on ' if name in named else ''}{words}")
    return "\n".join(lines)


def _described(task: Task, program: Program) -> dict[str, str]:
    """Every region in words, by its name."""
    if program.schedule.regions:
        return {r.id: f"{r.id} ({r.label}): line {r.line}" for r in program.schedule.regions}
    launchers = TopLevel.of(program.source).launchers(program.schedule, entry_name(task))
    groups = [group for group in program.schedule.groups if group.region]
    graph = rewritten(task.graph, program.schedule.rewrites)
    return {group.region: _region(graph, group, launchers) for group in groups}


def _region(graph: Graph, group: Group, launchers: dict[str, str]) -> str:
    nodes = {node.name: node for node in graph.nodes}
    ops = [nodes[name].op.removesuffix(".default") for name in group.nodes if name in nodes]
    numbered = sorted({nodes[name].line for name in group.nodes if name in nodes} - {0})
    label = label_of(graph, group.nodes)
    place = f", reference line {', '.join(map(str, numbered[:4]))}" if numbered else ""
    form = "library calls" if isinstance(group.form, Library) else "kernel of its own"
    if group.region in launchers:
        form = f"launcher {launchers[group.region]}"
    shown = ", ".join(ops[:8]) + (", …" if len(ops) > 8 else "")
    return f"{group.region} ({label}): {form}; {shown}{place}"
