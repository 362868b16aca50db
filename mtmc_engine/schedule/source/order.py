"""Grids of one axis whose programs stand for pairs of blocks: row by row, or in groups of rows."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import libcst as cst

from mtmc_engine.schedule.source.code import dotted
from mtmc_engine.schedule.source.flow import Flow, argument, ceiling
from mtmc_engine.schedule.source.listing import Expression

Count = tuple[str, str]
"""(size, block) of cdiv(size, block)."""
# An expression with its names resolved: an operator and its operands; ("?", …) where not seen.
Term = tuple[Any, ...]

_PROGRAM: Term = ("program",)
_OPERATORS: dict[type[cst.BaseBinaryOp], str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
}
_DEEPEST = 16


def other_count(flow: Flow, number: Expression, own: Count) -> Count | None:
    """What the grid counts beside `own`, where `number` is below cdiv of `own` in a grid of their
    product; `own` itself where it is below in any grid; None where that is not seen.

    Seen are, with m = cdiv(M, BLOCK_M) and n = cdiv(N, BLOCK_N), pid // n and pid % n, and the
    grouped order: first = pid // (G * n) * G, size = min(m - first, G), first + pid % size or
    first + pid % (G * n) % size, and pid % (G * n) // size.
    """
    term, mine = _term(flow, number), ("cdiv", ("name", own[0]), ("name", own[1]))
    if term == ("%", _PROGRAM, mine):
        return own
    if term[0] == "//" and term[1] == _PROGRAM:
        return _count(term[2])
    if term[0] == "+":
        return _row_in_group(term, mine)
    return _column_in_group(term, mine)


def _row_in_group(term: Term, rows: Term) -> Count | None:
    for first, rest in permutations(term[1:]):
        for columns, group, in_group in _groups(first):
            size = _two("min", ("-", rows, first), group)
            if rest in (("%", _PROGRAM, size), ("%", in_group, size)):
                return _count(columns)
    return None


def _column_in_group(term: Term, columns: Term) -> Count | None:
    if term[0] != "//" or term[2][0] != "min":
        return None
    for left, group in permutations(term[2][1:]):
        if left[0] != "-":
            continue
        _, rows, first = left
        for found, same_group, in_group in _groups(first):
            if (found, same_group, in_group) == (columns, group, term[1]):
                return _count(rows)
    return None


def _groups(first: Term) -> list[tuple[Term, Term, Term]]:
    """(columns, G, pid % (G * columns)) of first = pid // (G * columns) * G."""
    found = []
    if first[0] == "*":
        for number, group in permutations(first[1:]):
            if number[0] == "//" and number[1] == _PROGRAM and number[2][0] == "*":
                found += [
                    (columns, group, ("%", _PROGRAM, number[2]))
                    for factor, columns in permutations(number[2][1:])
                    if factor == group
                ]
    return found


def _count(term: Term) -> Count | None:
    if term[0] == "cdiv" and term[1][0] == term[2][0] == "name":
        return term[1][1], term[2][1]
    return None


def _term(flow: Flow, node: Expression, depth: int = _DEEPEST) -> Term:
    node = flow.resolved(node)
    found: Term | None = None
    divided = ceiling(node)
    if depth and divided is not None:
        return ("cdiv", *(_term(flow, part, depth - 1) for part in divided))
    match node:
        case cst.Name(value=name) if name not in flow.bindings:
            found = ("name", name)
        case cst.Call() if depth:
            found = _called(flow, node, depth)
        case cst.BinaryOperation(left=left, operator=operator, right=right) if depth:
            sign = _OPERATORS.get(type(operator), "")
            both = _term(flow, left, depth - 1), _term(flow, right, depth - 1)
            found = _two(sign, *both) if sign in ("+", "*") else (sign, *both) if sign else None
    return found or ("?", flow.listing.code.of(node))


def _called(flow: Flow, node: cst.Call, depth: int) -> Term | None:
    """Of pid, min(a, b) and x.to(dtype)."""
    word, values = flow.listing.word(node), [arg.value for arg in node.args]
    if word == "program_id":
        axis = argument(node, 0, "axis")
        return _PROGRAM if isinstance(axis, cst.Integer) and axis.value == "0" else None
    if len(values) == 2 and (word == "minimum" or dotted(node.func) == "min"):
        return _two("min", *(_term(flow, value, depth - 1) for value in values))
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "to":
        return _term(flow, node.func.value, depth - 1)
    return None


def _two(sign: str, one: Term, other: Term) -> Term:
    """A term of an operator that does not mind the order."""
    return (sign, *sorted((one, other), key=repr))
