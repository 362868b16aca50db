"""The language's own reductions, scans and products in place of those written out by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import libcst as cst

from mtmc_engine.schedule.source.code import Edit, dotted, walk
from mtmc_engine.schedule.source.flow import Flow, argument
from mtmc_engine.schedule.source.listing import Listing
from mtmc_engine.schedule.source.rewrite import Rewrite, Setting
from mtmc_engine.schedule.source.scalar_loop import vectorised
from mtmc_engine.schedule.source.slots import slot_of

_LEAST_DOT = 16
# The function of a whole axis, and the one of its beginnings, by what joins two elements.
_OF_AXIS = {"+": "sum", "max": "max", "min": "min"}
_OPERATORS: dict[type[cst.CSTNode], str] = {cst.Add: "+", cst.Multiply: "*"}
_FUNCTIONS = {"maximum": "max", "max": "max", "minimum": "min", "min": "min"}
_OF_BEGINNINGS = {"+": "cumsum", "*": "cumprod"}


def rewrites(listing: Listing, setting: Setting) -> Iterator[Rewrite]:
    """Every reduction, scan or product of each kernel that is recognised."""
    for kernel in listing.kernels.values():
        flow = Flow(listing, kernel)
        yield from vectorised(listing, flow)
        yield from _products(listing, flow, setting)
        yield from _combined(listing, flow)


def _products(listing: Listing, flow: Flow, setting: Setting) -> Iterator[Rewrite]:
    """`tl.sum(a[:, :, None] * b[None, :, :], axis=1)` is a product of matrices."""
    found = [
        (call, names)
        for call in listing.calls(flow.kernel.node, "sum")
        if (names := _factors(call)) is not None
    ]
    if not found or not _fits_dot(listing, flow):
        return
    word = sorted(listing.language, key=len)[0]
    exact = ', input_precision="ieee"' if setting.strict else ""
    yield Rewrite(
        flow.kernel.name,
        flow.kernel.name,
        "with dot",
        f"{flow.kernel.name} multiplies every pair and adds up: tl.dot does it in the tensor "
        "cores, without the block of all products.",
        listing,
        lambda: [
            listing.code.replaced(call, f"{word}.dot({a}, {b}{exact})") for call, (a, b) in found
        ],
    )


def _factors(call: cst.Call) -> tuple[str, str] | None:
    """Names of the matrices whose product a sum is."""
    product = argument(call, 0, "input")
    axis = argument(call, 1, "axis")
    if len(call.args) != 2 or not isinstance(axis, cst.Integer) or axis.value != "1":
        return None
    if not isinstance(product, cst.BinaryOperation):
        return None
    if not isinstance(product.operator, cst.Multiply):
        return None
    sides = [_spread(product.left), _spread(product.right)]
    if sides[0][1] == "010" or sides[1][1] == "001":
        sides.reverse()
    (a, left), (b, right) = sides
    return (a, b) if a and b and (left, right) == ("001", "100") else None


def _spread(node: cst.BaseExpression) -> tuple[str, str]:
    """A name and where None stands among its three indices: "001" for a[:, :, None]."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 3:
        return "", ""
    marks = ""
    for element in node.slice:
        if isinstance(element.slice, cst.Index) and dotted(element.slice.value) == "None":
            marks += "1"
        elif isinstance(element.slice, cst.Slice) and element.slice.lower is None:
            marks += "0"
        else:
            return "", ""
    return dotted(node.value), marks


def _fits_dot(listing: Listing, flow: Flow) -> bool:
    """Whether every block size is written out and large enough for tl.dot."""
    for launch in listing.launches_of(flow.kernel):
        slots = [slot_of(listing, launch, name) for name in flow.tiles]
        if not slots or any(slot is None or slot.value < _LEAST_DOT for slot in slots):
            return False
    return True


def _combined(listing: Listing, flow: Flow) -> Iterator[Rewrite]:
    """tl.reduce and tl.associative_scan with a function that the language has itself."""
    counts: Counter[str] = Counter()
    for call in listing.calls(flow.kernel.node, "reduce", "associative_scan"):
        is_scan = listing.word(call) == "associative_scan"
        values = [
            argument(call, at, name) for at, name in enumerate(("input", "axis", "combine_fn"))
        ]
        value, axis, function = values
        if value is None or axis is None or function is None or isinstance(value, cst.Tuple):
            continue
        name = dotted(function)
        joins = joined_by(listing, name)
        own = (_OF_BEGINNINGS if is_scan else _OF_AXIS).get(joins, "")
        if not own:
            continue
        counts[own] += 1
        ordinal = f" {counts[own]}" if counts[own] > 1 else ""
        yield Rewrite(
            flow.kernel.name,
            flow.kernel.name,
            f"with {own}{ordinal}",
            f"{name} is what tl.{own} does: the language's own needs no function of ours.",
            listing,
            lambda call=call, own=own, name=name: _replaced(listing, call, own, name),  # type: ignore[misc]
        )


def joined_by(listing: Listing, name: str) -> str:
    """ "+", "*", "max" or "min": what a function of two arguments returns; "" for another."""
    kernel = listing.kernels.get(name)
    if kernel is None or len(kernel.parameters) != 2:
        return ""
    one, other = (p.name for p in kernel.parameters)
    match [s for s in kernel.node.body.body if not _is_docstring(s)]:
        case [cst.SimpleStatementLine(body=[cst.Return(value=value)])]:
            return _joined(listing, value, one, other)
    return ""


def _joined(listing: Listing, value: cst.BaseExpression | None, one: str, other: str) -> str:
    match value:
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            both = {dotted(left), dotted(right)} == {one, other}
            return _OPERATORS.get(type(operator), "") if both else ""
        case cst.Call():
            word = listing.word(value) or dotted(value.func)
            both = {dotted(arg.value) for arg in value.args} == {one, other}
            if both and len(value.args) == 2:
                return _FUNCTIONS.get(word, "")
            return _chosen(value, one, other) if word == "where" else ""
    return ""


def _chosen(call: cst.Call, one: str, other: str) -> str:
    """tl.where(a > b, a, b) is a maximum."""
    if len(call.args) != 3 or not isinstance(call.args[0].value, cst.Comparison):
        return ""
    test = call.args[0].value
    if len(test.comparisons) != 1:
        return ""
    target = test.comparisons[0]
    sides = (dotted(test.left), dotted(target.comparator))
    taken = (dotted(call.args[1].value), dotted(call.args[2].value))
    if {*sides} != {one, other} or {*taken} != {one, other}:
        return ""
    greater = isinstance(target.operator, cst.GreaterThan | cst.GreaterThanEqual)
    if not greater and not isinstance(target.operator, cst.LessThan | cst.LessThanEqual):
        return ""
    return "max" if greater == (sides == taken) else "min"


def _is_docstring(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return True
    return False


def _replaced(listing: Listing, call: cst.Call, own: str, name: str) -> list[Edit]:
    code, word = listing.code, sorted(listing.language, key=len)[0]
    function = argument(call, 2, "combine_fn")
    kept = []
    for arg in call.args:
        if arg.value is not function:
            kept.append(code.data[code.start(arg) : code.end(arg)].decode())
    edits = [code.replaced(call, f"{word}.{own}({', '.join(kept)})")]
    kernel = listing.kernels[name]
    uses = sum(isinstance(n, cst.Name) and n.value == name for n in walk(code.module))
    if uses == 2:  # its definition and this call
        edits.append(_without_function(listing, kernel.node))
    return edits


def _without_function(listing: Listing, node: cst.FunctionDef) -> Edit:
    """A function's whole lines, with the empty ones behind it."""
    code = listing.code
    start = code.line_start(node.decorators[0]) if node.decorators else code.line_start(node)
    end = code.line_end(node)
    while code.data[end : end + 1] == b"\n":
        end += 1
    return Edit(start, end, "")
