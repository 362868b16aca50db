"""A few configurations of a kernel, measured where it runs first with sizes of a kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import libcst as cst

from mtmc_engine.schedule.source.code import Edit, dotted, names_in, walk
from mtmc_engine.schedule.source.flow import Flow
from mtmc_engine.schedule.source.listing import Binding, Kernel, Launch, Listing
from mtmc_engine.schedule.source.retile import choices, product_roles, shared_bytes
from mtmc_engine.schedule.source.rewrite import STAGES, WARPS, Rewrite, Setting, option_of
from mtmc_engine.schedule.source.slots import Tile, grid_of, slot_of, tiles_of

# At most this many configurations, the present one first.
_MOST = 5
_OPTIONS = ("num_warps", "num_stages")
_LARGE_TILE = 128 * 128


def rewrites(listing: Listing, setting: Setting) -> Iterator[Rewrite]:
    """Each kernel whose block sizes the launcher uses for nothing else."""
    for kernel in listing.kernels.values():
        flow = Flow(listing, kernel)
        tiles = tiles_of(listing, kernel)
        if not tiles or not _is_plain(kernel) or flow.has_atomics or "" in flow.writes:
            continue
        key = size_arguments(flow)
        plans = [_plan(listing, launch, tiles) for launch in listing.launches_of(kernel)]
        if not key or any(plan is None for plan in plans):
            continue
        configurations = _configurations(listing, kernel, tiles, setting)
        if len(configurations) < 2:
            continue
        restored = written_in_place(listing, flow)
        edits = [edit for plan in plans if plan is not None for edit in plan]
        edits += _definitions(listing, kernel, tiles, edits)
        yield Rewrite(
            kernel.name,
            kernel.name,
            "",
            f"{kernel.name} has one configuration: the best of {len(configurations)} is found "
            f"by measuring, for each {', '.join(key)}.",
            listing,
            lambda kernel=kernel, edits=edits, texts=(configurations, key, restored): [  # type: ignore[misc]
                *_once(edits),
                _decorated(listing, kernel, *texts),
            ],
        )


def _is_plain(kernel: Kernel) -> bool:
    return set(kernel.decorators) <= {"jit", "heuristics"} and _prefix(kernel) != ""


def _prefix(kernel: Kernel) -> str:
    decorator = kernel.decorators["jit"].decorator
    name = dotted(decorator.func if isinstance(decorator, cst.Call) else decorator)
    return name.removesuffix("jit")


def size_arguments(flow: Flow) -> list[str]:
    """Sizes that decide which configuration is best: bounds of masks and loops."""
    found: set[str] = set()
    for node in walk(flow.kernel.node.body):
        if isinstance(node, cst.Comparison):
            found |= names_in(node)
        elif isinstance(node, cst.For) and isinstance(node.iter, cst.Call):
            found |= {name for arg in node.iter.args for name in names_in(arg.value)}
        elif flow.listing.word(node) == "cdiv":
            found |= names_in(node)
    for _ in range(3):
        found |= {n for name in found if (v := flow.only(name)) is not None for n in names_in(v)}
    pointers = {flow.base(a) for n in walk(flow.kernel.node) if (a := flow.loaded(n)) is not None}
    pointers |= flow.writes
    return [
        p.name
        for p in flow.kernel.parameters
        if not p.constexpr and p.name in found - pointers and "stride" not in p.name
    ]


def written_in_place(listing: Listing, flow: Flow) -> list[str]:
    """Parameters whose memory a launch both reads and writes, by name or by what is passed.

    Each measured run would start from what the one before left, unless it is restored.
    """
    found = set(flow.reads & flow.writes)
    for launch in listing.launches_of(flow.kernel):
        passed: dict[str, list[str]] = {}
        for parameter in flow.kernel.parameters:
            value = launch.value(parameter.name)
            if value is not None and not parameter.constexpr:
                passed.setdefault(listing.code.of(value), []).append(parameter.name)
        for names in passed.values():
            if len(names) > 1:
                found |= set(names) & flow.writes
    return [p.name for p in flow.kernel.parameters if p.name in found]


def _plan(listing: Listing, launch: Launch, tiles: tuple[Tile, ...]) -> list[Edit] | None:
    """Edits that leave block sizes, warps and stages to the tuner; None where they cannot be."""
    names = [tile.name for tile in tiles]
    given = [launch.arguments.get(name) for name in names]
    by_position = any(arg is not None and arg.keyword is None for arg in given)
    if by_position or any(option_of(launch, option, 0) is None for option in _OPTIONS):
        return None
    slots = {name: slot_of(listing, launch, name) for name in names}
    variables = {slot.name: name for name, slot in slots.items() if slot and slot.name}
    grid = grid_of(listing, launch)
    leaving = [*(arg for arg in given if arg is not None)]
    leaving += [launch.arguments[option] for option in _OPTIONS if option in launch.arguments]
    edits = _without(listing, launch, leaving)
    if grid is None or edits is None:
        return None
    by_number = {id(node): tile.name for tile in tiles for node in tile.nodes}
    uses = [n for n in walk(grid.node) if _is_use(n, variables, by_number)]
    taken = {id(part) for arg in leaving for part in walk(arg)} | {id(use) for use in uses}
    if _read_elsewhere(listing, launch, variables, taken):
        return None
    if not uses:
        return edits
    if not grid.meta and not (isinstance(grid.node, cst.Tuple) and grid.node.lpar):
        return None
    meta = grid.meta or "META"
    for use in uses:
        name = variables[use.value] if isinstance(use, cst.Name) else by_number[id(use)]
        edits.append(listing.code.replaced(use, f'{meta}["{name}"]'))
    if not grid.meta:
        at = _opening(listing, grid.node)
        edits.append(Edit(at, at, f"lambda {meta}: "))
    return edits


def _read_elsewhere(
    listing: Listing, launch: Launch, variables: dict[str, str], taken: set[int]
) -> bool:
    """Whether a launcher uses a block size for more than the grid and the launch."""
    return launch.function is not None and any(
        isinstance(node, cst.Name)
        and node.value in variables
        and id(node) not in taken
        and not _is_definition(listing, node)
        for node in walk(launch.function)
    )


def _opening(listing: Listing, node: cst.CSTNode) -> int:
    """Where the parenthesis before a tuple is."""
    return listing.code.data.rfind(b"(", 0, listing.code.start(node))


def _is_use(
    node: cst.CSTNode, variables: dict[str, str], numbers: dict[int, str]
) -> TypeGuard[cst.Name | cst.Integer]:
    return id(node) in numbers or (isinstance(node, cst.Name) and node.value in variables)


def _is_definition(listing: Listing, node: cst.Name) -> bool:
    """Whether a name stands where it gets its value, or as a word before an equals sign."""
    parent = listing.code.parents.get(node)
    if isinstance(parent, cst.Arg):
        return parent.keyword is node
    return isinstance(parent, cst.AssignTarget)


def _without(listing: Listing, launch: Launch, leaving: list[cst.Arg]) -> list[Edit] | None:
    """The launch without some of its arguments; None where a comment stands among them."""
    code, args = listing.code, list(launch.call.args)
    gone = {id(arg) for arg in leaving}
    edits: list[Edit] = []
    at = 0
    while at < len(args):
        if id(args[at]) not in gone:
            at += 1
            continue
        last = at
        while last + 1 < len(args) and id(args[last + 1]) in gone:
            last += 1
        if last + 1 < len(args):
            edit = Edit(code.start(args[at]), code.start(args[last + 1]), "")
        elif at:
            edit = Edit(code.end(args[at - 1]), code.end(args[last]), "")
        else:
            edit = Edit(code.start(args[0]), code.end(args[last]), "")
        if b"#" in code.data[edit.start : edit.end]:
            return None
        edits.append(edit)
        at = last + 1
    return edits


def _definitions(
    listing: Listing, kernel: Kernel, tiles: tuple[Tile, ...], edits: list[Edit]
) -> list[Edit]:
    """Assignments of block sizes that nothing reads any more."""
    found = []
    for launch in listing.launches_of(kernel):
        for tile in tiles:
            slot = slot_of(listing, launch, tile.name)
            if slot is None or not slot.name:
                continue
            for scope in (launch.function, None):
                only = listing.only(scope, slot.name)
                if only is not None and only.value is slot.node:
                    found += _unused(listing, only, edits)
                    break
    return found


def _unused(listing: Listing, binding: Binding, edits: list[Edit]) -> list[Edit]:
    code = listing.code
    statement = code.statement(binding.node)
    if not isinstance(binding.node, cst.Assign) or len(binding.node.targets) != 1:
        return []
    if isinstance(binding.node.targets[0].target, cst.Tuple):
        return []
    for node in walk(code.module):
        if not isinstance(node, cst.Name) or node.value != binding.name:
            continue
        parent = code.parents.get(node)
        is_word = isinstance(parent, cst.Arg) and parent.keyword is node
        is_parameter = isinstance(parent, cst.Param) or _in_kernel(listing, node)
        is_target = parent is binding.node.targets[0]
        covered = any(e.start <= code.start(node) < e.end for e in edits)
        if not (is_word or is_parameter or is_target or covered):
            return []
    return [code.removed(statement)]


def _in_kernel(listing: Listing, node: cst.CSTNode) -> bool:
    """Whether a name of a kernel is meant: those are parameters there."""
    scope = listing.code.function(node)
    return scope is not None and any(k.node is scope for k in listing.kernels.values())


def _once(edits: list[Edit]) -> list[Edit]:
    return list(dict.fromkeys(edits))


def _configurations(
    listing: Listing, kernel: Kernel, tiles: tuple[Tile, ...], setting: Setting
) -> list[str]:
    launch = listing.launches_of(kernel)[0]
    warps = option_of(launch, "num_warps", WARPS) or WARPS
    stages = option_of(launch, "num_stages", STAGES) or STAGES
    roles = product_roles(Flow(listing, kernel), tiles)
    prefix = _prefix(kernel)
    found = [_configuration(prefix, {t: t.value for t in tiles}, warps, stages if roles else 0)]
    for sizes, _ in choices(listing, kernel, tiles, setting):
        if roles:
            shape = (sizes[roles[0]], sizes[roles[1]], sizes[roles[2]])
            count = 8 if shape[0] * shape[1] >= _LARGE_TILE else 4
            depth = next(
                n
                for n in (4, 3, 2, 1)
                if n == 1 or shared_bytes(shape, n, setting.item_bytes) <= setting.shared_bytes
            )
            found.append(_configuration(prefix, sizes, count, depth))
        else:
            found.append(_configuration(prefix, sizes, warps, 0))
    return list(dict.fromkeys(found))[:_MOST]


def _configuration(prefix: str, sizes: dict[Tile, int], warps: int, stages: int) -> str:
    pairs = ", ".join(f'"{tile.name}": {size}' for tile, size in sizes.items())
    depth = f", num_stages={stages}" if stages else ""
    return f"{prefix}Config({{{pairs}}}, num_warps={warps}{depth})"


def _decorated(
    listing: Listing,
    kernel: Kernel,
    configurations: list[str],
    key: list[str],
    restored: list[str],
) -> Edit:
    lines = [f"@{_prefix(kernel)}autotune(", "    configs=["]
    lines += [f"        {text}," for text in configurations]
    lines += ["    ],", f"    key=[{_quoted(key)}],"]
    if restored:
        lines.append(f"    restore_value=[{_quoted(restored)}],  # written in place")
    at = listing.code.line_start(kernel.node.decorators[0])
    return Edit(at, at, "".join(f"{line}\n" for line in [*lines, ")"]))


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
