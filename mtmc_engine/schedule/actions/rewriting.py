"""Steps that rewrite the graph: which groups its nodes then belong to, and what that saves."""

from __future__ import annotations

from mtmc_engine.core.action import Action
from mtmc_engine.core.program import ByHand, Form, Group, Library, Rewrite, Templated
from mtmc_engine.schedule.algebra.rewritten import found
from mtmc_engine.schedule.algebra.rules import RULES
from mtmc_engine.schedule.context import Change, Context
from mtmc_engine.schedule.evidence import microseconds

# A rewriting that saves less than this part of what it touches is not offered.
_LEAST_SAVED = 0.002


def offered(context: Context, kind: str) -> list[Action]:
    """The steps of a kind that save something by estimate, with what they do."""
    actions: list[Action] = []
    for group in context.groups:
        change = started(context, kind, group.region)
        times = faster(context, change) if change is not None else None
        if change is None or times is None:
            continue
        reason = reason_of(f"{group.region} ({context.label(group.nodes)})", change, times)
        actions.append(Action(kind, f"{kind} {group.region}", group.region, reason=reason))
    return actions


def started(context: Context, kind: str, *regions: str) -> Change | None:
    """The change that all rules of a kind which start in regions make; None without any."""
    nodes = (name for region in regions for name in context.group(region).nodes)
    origins = {name for name in nodes if context.initial[name]}
    rewrites = found(kind, context.task.graph, context.schedule.rewrites, origins)
    return regrouped(context, rewrites) if rewrites else None


def reason_of(where: str, change: Change, times: tuple[float, float]) -> str:
    """What the rules of a change do, each once, and what they save. times: as of `faster`."""
    said = "; ".join(dict.fromkeys(RULES[rewrite.rule].says for rewrite in change.rewrites))
    before, after = map(microseconds, times)
    return f"{where}: {said}; what this touches is estimated at {after} instead of {before}."


def regrouped(context: Context, rewrites: tuple[Rewrite, ...]) -> Change | None:
    """The change that rewritings make: groups keep their nodes and get what came from these.

    None where code written by hand would have to change.
    """
    there = context.under(rewrites)
    removed: list[Group] = []
    added: list[Group] = []
    members = _members(context, there)
    for group in context.groups:
        nodes = tuple(members.get(group.region, ()))
        if nodes == group.nodes and not _differ(context, there, nodes):
            continue
        if isinstance(group.form, ByHand):
            return None
        removed.append(group)
        if nodes:
            added.append(Group(group.region, nodes, _form(there, nodes, group.form)))
    return Change(tuple(removed), tuple(added), rewrites)


def _members(context: Context, there: Context) -> dict[str, list[str]]:
    """Nodes of the rewritten graph by the group that they belong to."""
    known = {name: group.region for group in context.groups for name in group.nodes}
    holder = {context.initial[name]: region for name, region in known.items()}
    before = context.facts.nodes
    members: dict[str, list[str]] = {}
    for node in there.graph.nodes:
        if node.name in before and before[node.name].origin == node.origin:
            region = known.get(node.name, "")
        else:
            initial = there.initial[node.name]
            region = holder.get(initial, "") if initial else ""
        members.setdefault(region, []).append(node.name)
    return members


def _differ(context: Context, there: Context, nodes: tuple[str, ...]) -> bool:
    """Whether any of these nodes is another one than before."""
    return any(context.facts.nodes[name] != there.facts.nodes[name] for name in nodes)


def _form(there: Context, nodes: tuple[str, ...], form: Form) -> Form:
    """The group's form for its new nodes; library calls where they are no kernel."""
    if not isinstance(form, Templated):
        return Library()
    default = there.lowered(nodes)
    if default is None:
        return Library()
    same = default.template == form.template and there.is_writable(nodes, form)
    return form if same else default


def faster(context: Context, change: Change) -> tuple[float, float] | None:
    """Estimated times in microseconds before and after.

    None where nothing is saved, and where groups would feed each other in a circle.
    """
    before = sum(context.costs[group.region].time_us for group in change.removed)
    there = context.under(change.rewrites)
    after = sum(there.cost(group).time_us for group in change.added)
    if after >= before * (1 - _LEAST_SAVED):
        return None
    try:
        context.changed(change)
    except ValueError:
        return None
    return before, after
