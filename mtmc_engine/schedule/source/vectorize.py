"""Wider loads and stores: no masks where blocks divide sizes, hints, wider blocks."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import libcst as cst

from mtmc_engine.schedule.source.bounds import Bound, arange_of, bounds_of, size_name
from mtmc_engine.schedule.source.code import Edit, dotted, walk
from mtmc_engine.schedule.source.flags import can_have_flags, flag_name, with_flags
from mtmc_engine.schedule.source.flow import Flow
from mtmc_engine.schedule.source.listing import Kernel, Listing
from mtmc_engine.schedule.source.retile import retiled
from mtmc_engine.schedule.source.rewrite import WARPS, Rewrite, Setting, option_of
from mtmc_engine.schedule.source.slots import tiles_of

# Bytes that one thread moves in one instruction at most.
_VECTOR = 16
_LARGEST = 1 << 14


def rewrites(listing: Listing, setting: Setting) -> Iterator[Rewrite]:
    """Each kernel without its masks, with hints, or with a block that fills whole vectors."""
    for kernel in listing.kernels.values():
        flow = Flow(listing, kernel)
        yield from _unmasked(listing, flow)
        yield from _hinted(listing, flow)
        yield from _widened(listing, kernel, setting)


def _unmasked(listing: Listing, flow: Flow) -> Iterator[Rewrite]:
    """Masks that drop out where the blocks divide the sizes, and stay where they do not.

    A constant True in the mask is what Triton's own simplification turns into no mask.
    """
    kernel = flow.kernel
    bounds = list(bounds_of(listing, flow))
    flags: dict[str, tuple[str, str, bool]] = {}
    for bound in bounds:
        flag = (bound.size, bound.block, bound.single)
        if flags.setdefault(flag_name(bound.size), flag) != flag:
            return
    if not flags or not can_have_flags(listing, kernel, flags):
        return
    sizes = ", ".join(size for size, _, _ in flags.values())
    yield Rewrite(
        kernel.name,
        kernel.name,
        "unmasked",
        f"Masks against {sizes} keep loads and stores from being vectors; where the blocks "
        "divide the sizes they are always true.",
        listing,
        lambda: [
            *(_freed(listing, bound) for bound in bounds),
            *with_flags(listing, kernel, flags),
        ],
    )


def _freed(listing: Listing, bound: Bound) -> Edit:
    text = f"({listing.code.of(bound.comparison)}) | {flag_name(bound.size)}"
    return listing.code.replaced(bound.comparison, text)


def _hinted(listing: Listing, flow: Flow) -> Iterator[Rewrite]:
    """Offsets that wrap around a size: they do not where the block divides it."""
    kernel = flow.kernel
    wrapped = list(_wrapped(flow))
    flags = {flag_name(size): (size, block, False) for _, _, size, block in wrapped}
    if not wrapped or not can_have_flags(listing, kernel, flags):
        return
    if len({(size, block) for _, _, size, block in wrapped}) != len(flags):
        return
    sizes = ", ".join(size for size, _, _ in flags.values())
    word = sorted(listing.language, key=len)[0]

    def edits() -> list[Edit]:
        hints = [
            listing.code.inserted_after(
                listing.code.statement(node),
                [
                    f"if {flag_name(size)}:",
                    f"    {name} = {word}.max_contiguous("
                    f"{word}.multiple_of({name}, {block}), {block})",
                ],
            )
            for name, node, size, block in wrapped
        ]
        return [*hints, *with_flags(listing, kernel, flags)]

    yield Rewrite(
        kernel.name,
        kernel.name,
        "with hints",
        f"Offsets that wrap around {sizes} look scattered to the compiler; where the block "
        "divides the size they are one contiguous range.",
        listing,
        edits,
    )


def _wrapped(flow: Flow) -> Iterator[tuple[str, cst.CSTNode, str, str]]:
    """(name, assignment, size, block) of `name = (... + tl.arange(0, BLOCK)) % size`."""
    for name, found in flow.bindings.items():
        value = found[0].value if len(found) == 1 else None
        if not isinstance(value, cst.BinaryOperation):
            continue
        if not isinstance(value.operator, cst.Modulo):
            continue
        size, inner = size_name(flow, value.right), value.left
        if not size or not isinstance(inner, cst.BinaryOperation):
            continue
        if not isinstance(inner.operator, cst.Add) or not isinstance(found[0].node, cst.Assign):
            continue
        for start, lanes in ((inner.left, inner.right), (inner.right, inner.left)):
            block = arange_of(flow, flow.resolved(lanes))
            product = flow.resolved(start)
            if block and _is_multiple(product, block):
                yield name, found[0].node, size, block
                break


def _is_multiple(node: cst.CSTNode, block: str) -> bool:
    return (
        isinstance(node, cst.BinaryOperation)
        and isinstance(node.operator, cst.Multiply)
        and block in (dotted(node.left), dotted(node.right))
    )


def _widened(listing: Listing, kernel: Kernel, setting: Setting) -> Iterator[Rewrite]:
    """A block that gives each thread a whole vector, for kernels without products or rows."""
    tiles = tiles_of(listing, kernel)
    flow = Flow(listing, kernel)
    if len(tiles) != 1 or flow.dots or not any(flow.loaded(n) for n in walk(kernel.node)):
        return
    warps = option_of(listing.launches_of(kernel)[0], "num_warps", WARPS) or WARPS
    now = prod(tile.value for tile in tiles) * setting.item_bytes / (32 * warps)
    size = _VECTOR * 32 * warps // setting.item_bytes
    if now < _VECTOR and size <= _LARGEST and not size & (size - 1):
        reason = (
            f"A block of {tiles[0].value} gives each of {32 * warps} threads {now:g} bytes; "
            f"one instruction moves {_VECTOR}."
        )
        yield retiled(listing, kernel, {tiles[0]: size}, reason, "widened")
