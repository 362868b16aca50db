"""What a planner sees: the program, its costs and what was done so far."""

from __future__ import annotations

from msgspec import Struct

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.measurement import GroupCost, TimeKind
from mtmc_engine.core.program import ByHand, Form, Library, Schedule
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.cost import cost_of, floor_us
from mtmc_engine.schedule.original import original_schedule
from mtmc_engine.schedule.regions import regions_in


class PastStep(Struct, frozen=True):
    """One earlier step and its effect.

    verdict: the class's name, such as "FASTER".
    ratio:   time of the program before over the time after; None where it was not timed.
    kept:    whether the present program contains it.
    """

    phrase: str
    verdict: str
    ratio: float | None = None
    kept: bool = True


class State(Struct, frozen=True):
    """A program at a point of a session.

    costs:   of the present program's groups: measured ones where there are, else estimates.
    time_us: 0 where it is neither measured nor estimated.
    history: all steps so far, oldest first.
    step:    number of the step to choose, from 1; hints: what the user advises, oldest first.
    """

    task: Task
    schedule: Schedule
    costs: tuple[GroupCost, ...]
    time_us: float
    time_kind: TimeKind = "estimated"
    history: tuple[PastStep, ...] = ()
    step: int = 1
    max_steps: int = 8
    hints: tuple[str, ...] = ()

    @property
    def device(self) -> DeviceCard:
        return self.task.device


class OperatorView(Struct, frozen=True):
    """One operator of the original: its first result's shape and dtype, and what it costs.

    dtype: "" for a region of Triton source, of which only the label is known.
    """

    region: str
    label: str
    shape: tuple[int, ...]
    dtype: str
    bytes_moved: int
    flops: int


class GroupView(Struct, frozen=True):
    """One group of the present program. form: "torch", a template's name, or "by hand"."""

    region: str
    label: str
    form: str
    share: float
    of_peak: float
    bound: str


class Observation(Struct, frozen=True):
    """The compact state: all that the state text reads, and what journal and training store."""

    task: str
    inputs: tuple[str, ...]
    device: DeviceCard
    operators: tuple[OperatorView, ...]
    groups: tuple[GroupView, ...]
    time_us: float
    time_kind: TimeKind
    floor_us: float
    history: tuple[PastStep, ...]
    step: int
    max_steps: int
    hints: tuple[str, ...]


def observe(state: State) -> Observation:
    """The compact form of a state."""
    task = state.task
    return Observation(
        task=task.name,
        inputs=tuple(f"{s.dtype} {_by(s.shape)}" for s in task.inputs[0].tensors),
        device=state.device,
        operators=_operators(task),
        groups=_groups(state),
        time_us=state.time_us,
        time_kind=state.time_kind,
        floor_us=floor_us(task, state.device),
        history=state.history,
        step=state.step,
        max_steps=state.max_steps,
        hints=state.hints,
    )


def _operators(task: Task) -> tuple[OperatorView, ...]:
    original = original_schedule(task)
    costs = {cost.region: cost for cost in cost_of(task, original, task.device)}
    views = []
    for region in regions_in(task.graph, original):
        if not region.nodes:  # of Triton source, where nothing is known of a region's work
            views.append(OperatorView(region.id, region.label, (), "", 0, 0))
            continue
        out = task.graph.node(region.nodes[-1]).out
        cost = costs[region.id]
        views.append(
            OperatorView(
                region=region.id,
                label=region.label,
                shape=out[0].shape if out else (),
                dtype=out[0].dtype if out else "",
                bytes_moved=cost.bytes_moved,
                flops=cost.flops,
            )
        )
    return tuple(views)


def _groups(state: State) -> tuple[GroupView, ...]:
    costs = {cost.region: cost for cost in state.costs}
    return tuple(
        GroupView(
            region=region.id,
            label=region.label,
            form=_form(state.schedule.group(region.id).form),
            share=costs[region.id].share,
            of_peak=costs[region.id].of_peak,
            bound=costs[region.id].bound,
        )
        for region in regions_in(state.task.graph, state.schedule)
        if region.id in costs
    )


def _form(form: Form) -> str:
    if isinstance(form, Library):
        return "torch"
    return "by hand" if isinstance(form, ByHand) else form.template


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"
