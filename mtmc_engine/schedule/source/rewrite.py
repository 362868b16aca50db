"""A change of by-hand source that a step may make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from mtmc_engine.core.program import Param
from mtmc_engine.schedule.source.code import Edit, rewritten
from mtmc_engine.schedule.source.listing import Launch, Listing

WIDTH = 100
# What Triton takes where a launch says nothing.
WARPS, STAGES = 4, 3


@dataclass(frozen=True)
class Setting:
    """What a rewrite may know besides the source.

    item_bytes: of an element of the inputs. results: elements that the operator returns.
    shared_bytes, sms: of the card. strict: whether products of float32 must keep their accuracy.
    """

    item_bytes: int = 4
    results: int = 0
    shared_bytes: int = 232448
    sms: int = 132
    strict: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Rewrite:
    """One change.

    place: of the region that it acts on, as Region has it; kernel: that it is part of.
    words: what follows the region's name in the phrase; reason: one sentence of evidence.
    """

    place: str
    kernel: str
    words: str
    reason: str
    listing: Listing
    edits: Callable[[], list[Edit]]
    params: dict[str, Param] = field(default_factory=dict)

    def source(self) -> str:
        """The whole source after the change."""
        return rewritten(self.listing.code, self.edits())


def option_of(launch: Launch, name: str, default: int) -> int | None:
    """num_warps or num_stages of a launch; None where it is no number that is written out."""
    given = launch.arguments.get(name)
    if given is None:
        return default
    return int(given.value.value, 0) if isinstance(given.value, cst.Integer) else None


def with_option(listing: Listing, launch: Launch, name: str, value: int) -> list[Edit]:
    """The launch with an option set, behind its other arguments where it has none yet."""
    given = launch.arguments.get(name)
    if given is not None:
        return [listing.code.replaced(given.value, str(value))]
    return appended(listing, launch.call.args, f"{name}={value}")


def appended(listing: Listing, items: Sequence[cst.CSTNode], *texts: str) -> list[Edit]:
    """More items behind the last of a call's arguments, or of a function's parameters.

    Each gets a line of its own where the last has one; else they stay on its line while that is
    short enough, and all get one between the parentheses where it is not.
    """
    code = listing.code
    first, last = items[0], items[-1]
    at, line = code.end(last), code.data[code.line_start(last) : code.line_end(last)].decode()
    before, joined = code.indent(last), ", ".join(texts)
    if not before.strip():
        if code.data[at : code.line_end(last)].lstrip().startswith(b","):
            return [code.inserted_after(last, [f"{text}," for text in texts])]
        return [Edit(at, at, "".join(f",\n{before}{text}" for text in texts))]
    indent = " " * (len(line) - len(line.lstrip()))
    if len(line.rstrip()) + len(joined) + 2 <= WIDTH:
        return [Edit(at, at, f", {joined}")]
    start = code.start(first)
    if code.data[start - 1 : start] == b"(" and code.data[at : at + 1] == b")":
        opening = Edit(start, start, f"\n{indent}    ")
        return [opening, Edit(at, at, f", {joined}\n{indent}")]
    return [Edit(at, at, f",\n{indent}{joined}")]
