"""Other block sizes of a kernel, at its launch or where the number stands."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2, prod

from mtmc_engine.schedule.source.flow import Flow
from mtmc_engine.schedule.source.listing import Kernel, Listing
from mtmc_engine.schedule.source.rewrite import STAGES, WARPS, Rewrite, Setting, option_of
from mtmc_engine.schedule.source.slots import Tile, tiles_of

# Tiles of products: rows, columns, depth.
_PRODUCTS = (
    (128, 128, 64),
    (128, 128, 32),
    (128, 64, 64),
    (64, 128, 64),
    (128, 64, 32),
    (64, 128, 32),
    (64, 64, 64),
    (64, 64, 32),
    (128, 256, 64),
    (256, 128, 64),
    (32, 64, 64),
    (64, 32, 64),
    (32, 32, 32),
)
_LARGEST = 1 << 16
# Bytes that one thread of a kernel without products should move at a time.
_BYTES_PER_THREAD = 32
_REGISTERS = 128
_PER_KERNEL = 3


def rewrites(listing: Listing, setting: Setting) -> Iterator[Rewrite]:
    """The most promising other block sizes of every kernel."""
    for kernel in listing.kernels.values():
        tiles = tiles_of(listing, kernel)
        if not tiles:
            continue
        for sizes, reason in choices(listing, kernel, tiles, setting)[:_PER_KERNEL]:
            yield retiled(listing, kernel, sizes, reason)


def choices(
    listing: Listing, kernel: Kernel, tiles: tuple[Tile, ...], setting: Setting
) -> list[tuple[dict[Tile, int], str]]:
    """Other sizes of all tiles of a kernel with the reason for each, best first."""
    roles = product_roles(Flow(listing, kernel), tiles)
    if roles:
        return _products(listing, kernel, roles, setting)
    return _blocks(listing, kernel, tiles, setting)


def retiled(
    listing: Listing, kernel: Kernel, sizes: dict[Tile, int], reason: str, words: str = ""
) -> Rewrite:
    """A kernel with other block sizes."""
    code = "x".join(map(str, sizes.values()))
    changed = {tile: size for tile, size in sizes.items() if size != tile.value}
    return Rewrite(
        kernel.name,
        kernel.name,
        words or f"to {code}",
        reason,
        listing,
        lambda: [
            listing.code.replaced(node, str(size))
            for tile, size in changed.items()
            for node in tile.nodes
        ],
        {tile.name: size for tile, size in changed.items()},
    )


def product_roles(flow: Flow, tiles: tuple[Tile, ...]) -> tuple[Tile, Tile, Tile] | None:
    """Rows, columns and depth of a kernel's product; None where it has none that is seen."""
    if not flow.dots:
        return None
    depth = [tile for tile in tiles if tile.loops]
    others = [tile for tile in tiles if not tile.loops]
    if len(depth) != 1 or len(others) != 2:
        return None
    return others[0], others[1], depth[0]


def shared_bytes(sizes: tuple[int, int, int], stages: int, item_bytes: int) -> int:
    """Shared memory of a product's operand tiles over all stages."""
    rows, columns, depth = sizes
    return (rows + columns) * depth * item_bytes * max(stages, 1)


def _products(
    listing: Listing, kernel: Kernel, roles: tuple[Tile, Tile, Tile], setting: Setting
) -> list[tuple[dict[Tile, int], str]]:
    launch = listing.launches_of(kernel)[0]
    warps = option_of(launch, "num_warps", WARPS) or WARPS
    stages = option_of(launch, "num_stages", STAGES) or STAGES
    now = (roles[0].value, roles[1].value, roles[2].value)
    alone = len(listing.launches) == 1 and setting.results > 0
    found = []
    for rank, sizes in enumerate(_PRODUCTS):
        rows, columns, _ = sizes
        fits = shared_bytes(sizes, stages, setting.item_bytes) <= setting.shared_bytes
        if sizes == now or not fits or rows * columns > 32 * warps * _REGISTERS:
            continue
        programs = setting.results // (rows * columns) if alone else setting.sms
        starved = max(0.0, 1 - programs / setting.sms)
        found.append((starved, rank, sizes))
    return [
        (dict(zip(roles, sizes, strict=True)), _why_product(now, sizes, setting, alone))
        for _, _, sizes in sorted(found)
    ]


def _why_product(
    now: tuple[int, int, int], sizes: tuple[int, int, int], setting: Setting, alone: bool
) -> str:
    def reuse(size: tuple[int, int, int]) -> float:
        return size[0] * size[1] / (size[0] + size[1])

    text = (
        f"A tile of {now[0]}x{now[1]} does {reuse(now):.0f} products for each element that it "
        f"loads, one of {sizes[0]}x{sizes[1]} {reuse(sizes):.0f}"
    )
    if not alone:
        return f"{text}."
    programs = [max(1, setting.results // (s[0] * s[1])) for s in (now, sizes)]
    return f"{text}, in {programs[1]} programs instead of {programs[0]} for {setting.sms} SMs."


def _blocks(
    listing: Listing, kernel: Kernel, tiles: tuple[Tile, ...], setting: Setting
) -> list[tuple[dict[Tile, int], str]]:
    """One block size changed at a time."""
    warps = option_of(listing.launches_of(kernel)[0], "num_warps", WARPS) or WARPS
    has_dots = bool(Flow(listing, kernel).dots)
    now = {tile: tile.value for tile in tiles}
    found = []
    for tile in tiles:
        for size in (tile.value * 2, tile.value // 2, tile.value * 4, tile.value // 4):
            if not (16 if has_dots else 2) <= size <= _LARGEST or size & (size - 1):
                continue
            sizes = {**now, tile: size}
            each = prod(sizes.values()) * setting.item_bytes / (32 * warps)
            if prod(sizes.values()) > _LARGEST * 2:
                continue
            found.append((abs(log2(each / _BYTES_PER_THREAD)), sizes, each))
    found.sort(key=lambda item: item[0])
    before = prod(now.values()) * setting.item_bytes / (32 * warps)
    return [
        (
            sizes,
            f"A block of {'x'.join(map(str, now.values()))} gives each thread {before:g} bytes "
            f"at a time, one of {'x'.join(map(str, sizes.values()))} {each:g}.",
        )
        for _, sizes, each in found
    ]
