"""Reductions that a kernel does one element at a time, as blocks of lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from mtmc_engine.schedule.source.code import Edit, dotted, names_in, walk
from mtmc_engine.schedule.source.flow import Flow, argument
from mtmc_engine.schedule.source.listing import Expression, Listing
from mtmc_engine.schedule.source.rewrite import Rewrite

_LANES = 1024
# What a lane holds before it has seen an element, and how lanes and then blocks are joined.
_REDUCTIONS = {
    "sum": "0.0",
    "max": 'float("-inf")',
    "min": 'float("inf")',
}


@dataclass(frozen=True, eq=False)
class Accumulation:
    """A statement `name += value`, or `name = tl.maximum(name, value)`. kind: sum, max or min."""

    name: str
    kind: str
    value: Expression
    statement: cst.SimpleStatementLine


@dataclass(frozen=True, eq=False)
class ScalarLoop:
    """A loop over single elements that only accumulates.

    counters: places of the loop's variable in addresses; loads: calls that depend on it.
    """

    loop: cst.For
    variable: str
    bounds: tuple[str, str]
    accumulations: tuple[Accumulation, ...]
    loads: tuple[cst.Call, ...]
    counters: tuple[cst.Name, ...]


def vectorised(listing: Listing, flow: Flow) -> Iterator[Rewrite]:
    """Each loop of a kernel that reads one element a turn and adds it up, in blocks."""
    counts: Counter[str] = Counter()
    for loop in flow.loops:
        label = flow.label(loop)
        counts[label] += 1
        found = scalar_loop(listing, flow, loop)
        if found is None:
            continue
        kinds = " and ".join(dict.fromkeys(f"tl.{a.kind}" for a in found.accumulations))
        yield Rewrite(
            f"{flow.kernel.name}/{label} {counts[label]}",
            flow.kernel.name,
            "",
            f"The {label} reads one element a turn: {_LANES} at a time and {kinds} at the end "
            "make full use of each load.",
            listing,
            lambda found=found: _edits(listing, found),  # type: ignore[misc]
        )


def scalar_loop(listing: Listing, flow: Flow, loop: cst.For) -> ScalarLoop | None:
    """What a loop accumulates; None where it does anything that is not understood."""
    variable = dotted(loop.target)
    bounds = _bounds(listing, flow, loop)
    if not variable or bounds is None or loop.orelse is not None:
        return None
    if {variable, "lanes", "inside"} & _names_elsewhere(listing, flow, loop):
        return None
    accumulations = _accumulations(listing, flow, loop)
    counters = [n for n in walk(loop.body) if isinstance(n, cst.Name) and n.value == variable]
    loads = [_load_around(flow, node) for node in counters]
    if not accumulations or not loads or None in loads:
        return None
    found = tuple(dict.fromkeys(load for load in loads if load is not None))
    return ScalarLoop(loop, variable, bounds, accumulations, found, tuple(counters))


def _accumulations(listing: Listing, flow: Flow, loop: cst.For) -> tuple[Accumulation, ...] | None:
    """What a loop adds up; None where one of its statements does anything else."""
    accumulations, own = [], []
    for statement in loop.body.body:
        if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
            return None
        accumulation = _accumulation(listing, statement)
        if accumulation is not None:
            accumulations.append(accumulation)
        elif (name := _own(statement)) is not None:
            own.append(name)
        else:
            return None
    names = [a.name for a in accumulations]
    clear = len(set(names)) == len(names) and not set(own) & set(names)
    stands = clear and _stand_alone(listing, flow, loop, names, own)
    return tuple(accumulations) if stands else None


def _bounds(listing: Listing, flow: Flow, loop: cst.For) -> tuple[str, str] | None:
    call = loop.iter
    if not isinstance(call, cst.Call) or any(a.star or a.keyword for a in call.args):
        return None
    if dotted(call.func) != "range" and flow.listing.word(call) != "range":
        return None
    values = [listing.code.of(arg.value) for arg in call.args]
    if len(values) == 3 and values.pop() != "1":
        return None
    if not 0 < len(values) < 3:
        return None
    end = call.args[len(values) - 1].value
    text = values[-1] if isinstance(end, cst.Name | cst.Integer) else f"({values[-1]})"
    return (values[0] if len(values) == 2 else "0", text)


def _names_elsewhere(listing: Listing, flow: Flow, loop: cst.For) -> set[str]:
    """Names of the kernel outside of a loop and of other loops over the same variable."""
    code = listing.code
    same = [n for n in flow.loops if dotted(n.target) == dotted(loop.target)]
    spans = [(code.start(n), code.end(n)) for n in same]
    inside = (code.start(loop), code.end(loop))
    found = {p.name for p in flow.kernel.parameters}
    for node in walk(flow.kernel.node):
        if not isinstance(node, cst.Name):
            continue
        at = code.start(node)
        is_fresh = node.value in ("lanes", "inside") and inside[0] <= at < inside[1]
        if is_fresh or not any(start <= at < end for start, end in spans):
            found.add(node.value)
    return found - _made_before(listing, flow)


def _made_before(listing: Listing, flow: Flow) -> set[str]:
    """Names that an earlier rewrite of another loop made, which may be made again."""
    lanes = flow.only("lanes")
    is_ours = lanes is not None and listing.code.of(lanes).endswith(f"arange(0, {_LANES})")
    return {"lanes", "inside"} if is_ours else set()


def _accumulation(listing: Listing, statement: cst.SimpleStatementLine) -> Accumulation | None:
    match statement.body[0]:
        case cst.AugAssign(target=cst.Name(value=name), operator=cst.AddAssign(), value=value):
            return Accumulation(name, "sum", value, statement)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
            return _joined(listing, name, value, statement)
    return None


def _joined(
    listing: Listing, name: str, value: Expression, statement: cst.SimpleStatementLine
) -> Accumulation | None:
    """`name + x`, `x + name`, `tl.maximum(name, x)` and the like."""
    parts: list[Expression] = []
    kind = ""
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        parts, kind = [value.left, value.right], "sum"
    elif isinstance(value, cst.Call) and len(value.args) == 2:
        called = listing.word(value) or dotted(value.func)
        kind = {"maximum": "max", "max": "max", "minimum": "min", "min": "min"}.get(called, "")
        parts = [arg.value for arg in value.args]
    others = [part for part in parts if dotted(part) != name]
    if not kind or len(others) != 1 or name in names_in(others[0]):
        return None
    return Accumulation(name, kind, others[0], statement)


def _own(statement: cst.SimpleStatementLine) -> str | None:
    """The name of a value that a turn of the loop makes for itself."""
    match statement.body[0]:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return name
    return None


def _stand_alone(
    listing: Listing, flow: Flow, loop: cst.For, names: list[str], own: list[str]
) -> bool:
    """Whether nothing in the loop is a block, and nothing of a turn is read elsewhere."""
    code = listing.code
    inside = (code.start(loop), code.end(loop))
    for name in own:
        spans = [n for n in walk(flow.kernel.node) if isinstance(n, cst.Name) and n.value == name]
        loops = [_innermost(listing, flow, n) for n in spans]
        if any(n is None for n in loops) or _read_before_made(listing, loop, name):
            return False
    for node in walk(loop.body):
        if isinstance(node, cst.Name) and node.value in names:
            statement = code.statement(node)
            if _accumulation(listing, statement) is None:  # type: ignore[arg-type]
                return False
    taken = {n.value for n in walk(flow.kernel.node) if isinstance(n, cst.Name)}
    if any(f"{name}_lanes" in taken for name in names):
        return False
    starts = [b for name in names for b in flow.bindings[name] if code.start(b.node) < inside[0]]
    if not all(_starts_float(listing, b.value) for b in starts if b.value is not None):
        return False
    read = names_in(loop.body) | {n for arg in loop.iter.children for n in names_in(arg)}
    local = {*own, dotted(loop.target)}
    return all(_is_scalar(flow, name, frozenset(local)) for name in read - local)


def _innermost(listing: Listing, flow: Flow, node: cst.CSTNode) -> cst.For | None:
    return next((n for n in listing.code.ancestors(node) if isinstance(n, cst.For)), None)


def _read_before_made(listing: Listing, loop: cst.For, name: str) -> bool:
    """Whether a turn may read what an earlier one left in a name."""
    for node in walk(loop.body):
        if isinstance(node, cst.Name) and node.value == name:
            statement = listing.code.statement(node)
            assert isinstance(statement, cst.SimpleStatementLine)
            made = statement.body[0]
            return not (isinstance(made, cst.Assign) and name not in names_in(made.value))
    return False


def _starts_float(listing: Listing, value: Expression) -> bool:
    """Whether an accumulator begins as a floating-point number."""
    if isinstance(value, cst.UnaryOperation):
        value = value.expression
    if isinstance(value, cst.Float):
        return True
    return isinstance(value, cst.Call) and dotted(value.func) == "float"


def _is_scalar(flow: Flow, name: str, seen: frozenset[str]) -> bool:
    """Whether a name of the kernel never holds a block."""
    if name in seen:
        return True
    values = [_value(binding.node) for binding in flow.bindings.get(name, ())]
    return all(value is None or _is_scalar_value(flow, value, seen | {name}) for value in values)


def _value(node: cst.CSTNode) -> Expression | None:
    match node:
        case cst.Assign(value=value) | cst.AnnAssign(value=value) | cst.AugAssign(value=value):
            return value
    return None


def _is_scalar_value(flow: Flow, value: Expression, seen: frozenset[str]) -> bool:
    word = flow.listing.word(value)
    if word in _REDUCTIONS and isinstance(value, cst.Call):
        reduced = dotted(argument(value, 0, "input"))
        return reduced.endswith("_lanes")
    blocks = ("arange", "zeros", "full", "zeros_like", "make_block_ptr", "make_tensor_descriptor")
    if any(flow.listing.word(node) in blocks for node in walk(value)):
        return False
    known = {alias.split(".")[0] for alias in flow.listing.language} | {"float", "range", "triton"}
    return all(_is_scalar(flow, name, seen) for name in names_in(value) - known)


def _load_around(flow: Flow, node: cst.Name) -> cst.Call | None:
    """The load whose address a counter is added to; None where it is used in another way."""
    code = flow.listing.code
    below: cst.CSTNode = node
    multiplied = False
    for parent in code.ancestors(node):
        match parent:
            case cst.BinaryOperation(operator=cst.Multiply()) if not multiplied and below is node:
                multiplied = True
            case cst.BinaryOperation(operator=cst.Add()):
                pass
            case cst.Arg():
                pass
            case cst.Call():
                is_load = flow.listing.word(parent) == "load" and len(parent.args) == 1
                return parent if is_load else None
            case _:
                return None
        below = parent
    return None


def _edits(listing: Listing, found: ScalarLoop) -> list[Edit]:
    code, word = listing.code, sorted(listing.language, key=len)[0]
    call = found.loop.iter
    assert isinstance(call, cst.Call)
    function = code.function(found.loop)
    has_lanes = bool(listing.bindings(function).get("lanes"))
    before = [] if has_lanes else [f"lanes = {word}.arange(0, {_LANES})"]
    after = []
    edits = []
    for one in found.accumulations:
        neutral, lanes = _REDUCTIONS[one.kind], f"{one.name}_lanes"
        before.append(f"{lanes} = {word}.full([{_LANES}], {neutral}, {word}.float32)")
        value = f"{word}.where(inside, {_inner(listing, found, one.value)}, {neutral})"
        if one.kind == "sum":
            text = f"{lanes} += {value}"
            after.append(f"{one.name} += {word}.sum({lanes}, axis=0)")
        else:
            join = f"{word}.{one.kind}imum"
            text = f"{lanes} = {join}({lanes}, {value})"
            after.append(f"{one.name} = {join}({one.name}, {word}.{one.kind}({lanes}, axis=0))")
        edits.append(code.replaced(one.statement.body[0], text))
    changed = [(edit.start, edit.end) for edit in edits]
    edits += [
        edit
        for edit in _loads(listing, found)
        if not any(start <= edit.start < end for start, end in changed)
    ]
    start, end = found.bounds
    edits.append(code.replaced(call, f"{code.of(call.func)}({start}, {end}, {_LANES})"))
    first = found.loop.body.body[0]
    edits.append(code.inserted_before(first, [f"inside = {found.variable} + lanes < {end}"]))
    edits.append(code.inserted_before(found.loop, before))
    edits.append(code.inserted_after(found.loop, after))
    return edits


def _loads(listing: Listing, found: ScalarLoop) -> list[Edit]:
    """Counters with lanes, and loads that stay within bounds."""
    code = listing.code
    edits = [code.replaced(node, f"({node.value} + lanes)") for node in found.counters]
    for load in found.loads:
        at = code.end(load.args[-1].value)
        edits.append(Edit(at, at, ", mask=inside, other=0.0"))
    return edits


def _inner(listing: Listing, found: ScalarLoop, value: Expression) -> str:
    """The text of an accumulated value with its loads in lanes."""
    code = listing.code
    start, end = code.start(value), code.end(value)
    text = code.data[start:end]
    for edit in sorted(_loads(listing, found), key=lambda e: -e.start):
        if start <= edit.start and edit.end <= end:
            text = text[: edit.start - start] + edit.text.encode() + text[edit.end - start :]
    return text.decode()
