"""Estimated cost of a schedule on a card, and the floor that no program can beat."""

from __future__ import annotations

import math

from msgspec.structs import replace

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.graph import Graph, node_refs, refs
from mtmc_engine.core.measurement import GroupCost
from mtmc_engine.core.program import ByHand, Group, Library, Schedule, Templated
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.algebra import rewritten
from mtmc_engine.schedule.classes import HEAVY, Sort
from mtmc_engine.schedule.library_cost import library_kernels
from mtmc_engine.schedule.roofline import COPY_EFFICIENCY, Kernel, bytes_per_us, ideal_us
from mtmc_engine.schedule.template_cost import group_flops, outside_bytes, template_kernels
from mtmc_engine.schedule.work import Facts, bytes_touched, dot_mode, facts_of, stored_bytes


def is_known(schedule: Schedule) -> bool:
    """Whether a roofline can tell programs of this kind apart: not those of Triton source."""
    return not schedule.regions


def cost_of(task: Task, schedule: Schedule, device: DeviceCard) -> tuple[GroupCost, ...]:
    """Estimated cost of each named group at the declared shapes, in the schedule's order.

    The time of a group is that of its kernels at their roofline, lowered by what their
    parameters waste, plus `launch_us` for each launch. Infinite where a kernel does not fit
    on the card. Nothing is known of a program that the user wrote in Triton: no costs.
    """
    if not is_known(schedule):
        return ()
    graph = rewritten(task.graph, schedule.rewrites)
    facts, on_card = facts_of(graph), replace(task, device=device)
    costs = [group_cost(facts, on_card, group) for group in schedule.groups if group.region]
    total = sum(cost.time_us for cost in costs)
    return tuple(replace(cost, share=_share(cost.time_us, total)) for cost in costs)


def _share(part: float, total: float) -> float:
    if math.isinf(total):
        return 1.0 if math.isinf(part) else 0.0
    return part / total if total else 0.0


def group_cost(facts: Facts, task: Task, group: Group) -> GroupCost:
    """Estimated cost of one group on the task's card; its share is left at 0."""
    kernels = _kernels(facts, task, group)
    launch = task.device.launch_us * len(kernels)
    flops = sum(kernel.flops for kernel in kernels)
    nbytes = sum(kernel.bytes_moved for kernel in kernels)
    busy = sum(kernel.time_us for kernel in kernels)
    mode = _mode(facts, task, group)
    least = ideal_us(task.device, sum(outside_bytes(facts, group.nodes)), flops, mode)
    time_us = busy + launch
    return GroupCost(
        region=group.region,
        time_us=time_us,
        bytes_moved=nbytes,
        flops=flops,
        share=0.0,
        of_peak=min(1.0, least / time_us) if time_us else 1.0,
        bound=_bound(
            launch_us=launch,
            busy_us=busy,
            moving_us=ideal_us(task.device, nbytes, 0, mode),
            computing_us=ideal_us(task.device, 0, flops, mode),
        ),
    )


def _kernels(facts: Facts, task: Task, group: Group) -> tuple[Kernel, ...]:
    match group.form:
        case Library():
            return tuple(
                kernel
                for name in group.nodes
                for kernel in library_kernels(facts, task, facts.nodes[name])
            )
        case Templated() as form:
            return template_kernels(facts, task, group, form)
        case ByHand():
            return (_by_hand(facts, task, group),)


def _by_hand(facts: Facts, task: Task, group: Group) -> Kernel:
    """Code of unknown quality: one kernel that moves each byte once at a copy's speed."""
    nbytes, flops = sum(outside_bytes(facts, group.nodes)), group_flops(facts, group.nodes)
    least = ideal_us(task.device, nbytes, flops, _mode(facts, task, group))
    return Kernel(nbytes, flops, least / COPY_EFFICIENCY)


def _mode(facts: Facts, task: Task, group: Group) -> str:
    heavy = [name for name in group.nodes if facts.sorts[name] in HEAVY]
    if not heavy:
        return "fp32"
    node = facts.nodes[heavy[0]]
    dtype = node.out[0].dtype
    if facts.sorts[node.name] is Sort.CONVOLUTION and dtype == "float32":
        return "tf32"
    return dot_mode(task, dtype)


def _bound(*, launch_us: float, busy_us: float, moving_us: float, computing_us: float) -> str:
    if launch_us >= busy_us:
        return "launch"
    return "compute" if computing_us > moving_us else "memory"


def estimate_us(costs: tuple[GroupCost, ...], _device: DeviceCard) -> float:
    """Estimated time of a whole call: groups run one after the other."""
    return sum(cost.time_us for cost in costs)


def floor_us(task: Task, device: DeviceCard, schedule: Schedule | None = None) -> float:
    """Least time of any program: compulsory bytes over peak bandwidth.

    schedule: of one that may need less, since its rewritings prepare some weights once.
    Compulsory are the inputs, parameters and buffers that a result depends on, each read once
    and no further than views select, and the results, each written once.
    """
    whole = _floor_us(task.graph, device)
    if schedule is None or not schedule.rewrites:
        return whole
    return min(whole, _floor_us(rewritten(task.graph, schedule.rewrites), device))


def _floor_us(graph: Graph, device: DeviceCard) -> float:
    facts = facts_of(graph)
    results = dict.fromkeys([*refs(graph.outputs), *graph.mutations.values()])
    needed = _ancestors(facts, list(results))
    read = sum(bytes_touched(facts, value.name, needed, compulsory=True) for value in graph.inputs)
    written = sum(stored_bytes(facts, name) for name in results if _is_computed(facts, name))
    return (read + written) / bytes_per_us(device)


def _ancestors(facts: Facts, names: list[str]) -> frozenset[str]:
    """Nodes that these values are computed from, themselves included."""
    seen: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name in facts.nodes and name not in seen:
            seen.add(name)
            stack.extend(node_refs(facts.nodes[name]))
    return frozenset(seen)


def _is_computed(facts: Facts, name: str) -> bool:
    """Whether a result has memory of its own: not an input, nor a view of one."""
    while name in facts.nodes and facts.sorts[name] is Sort.VIEW:
        name = next(iter(node_refs(facts.nodes[name])), "")
    return name in facts.nodes
