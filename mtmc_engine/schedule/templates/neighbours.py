"""Other parameters of a template that an action may try."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.core.graph import Graph
from mtmc_engine.core.program import Templated
from mtmc_engine.schedule.templates.choose import (
    LONGEST_ROW,
    Params,
    power_of_two,
    row_warps,
)
from mtmc_engine.schedule.templates.fit import fitted
from mtmc_engine.schedule.templates.passes import pairs_of
from mtmc_engine.schedule.templates.products import product_programs, product_variants
from mtmc_engine.schedule.templates.space import Space
from mtmc_engine.schedule.templates.split import split_form
from mtmc_engine.schedule.templates.trace import Trace

MOST = 4


def variants(
    graph: Graph, nodes: Sequence[str], form: Templated, device: DeviceCard
) -> dict[str, tuple[Params, ...]]:
    """Parameter changes by the action's kind, at most four each; each differs from `form`.

    Kinds: "retile", "pipeline", "vectorize", "one_pass", "split", "reorder", "precision",
    "persist", "autotune". A change that names a "template" replaces all parameters. Raises
    Unsupported where `form` is not the group's template.
    """
    program, space = fitted(graph, nodes)
    if form.template == "matmul":
        found = product_variants(program, form, device)
    elif form.template == "pointwise":
        found = _pointwise(form)
    else:
        found = _rows(program, space, form)
        shared = split_form(program, space, device)
        if shared is not None and form.template != "split":
            found["split"] = [{"template": "split", **shared.params}]
    return {kind: _other(form, changes) for kind, changes in found.items()}


def _other(form: Templated, changes: Iterable[Params]) -> tuple[Params, ...]:
    different = [c for c in changes if any(form.params.get(k) != v for k, v in c.items())]
    return tuple(different[:MOST])


def _pointwise(form: Templated) -> dict[str, list[Params]]:
    block, warps = int(form.params["block"]), int(form.params["warps"])
    each = max(1, block // (32 * warps))
    retile: list[Params] = [
        {"block": size, "warps": max(1, min(16, size // (32 * each)))}
        for size in (2048, 4096, 512, 1024)
    ]
    wider: list[Params] = [{"block": 32 * warps * more} for more in (8, 16) if more > each]
    return {"retile": retile, "vectorize": wider}


def _rows(program: Trace, space: Space, form: Templated) -> dict[str, list[Params]]:
    warps = int(form.params["warps"])
    found: dict[str, list[Params]] = {
        "pipeline": [{"warps": n} for n in (warps * 2, warps // 2) if 1 <= n <= 32]
    }
    if form.template == "split":
        found["retile"] = [{"splits": count} for count in (16, 32, 64, 128, 256)]
        return found
    if form.template == "rows_loop":
        inner = bool(space.inner.runs)
        blocks = (16, 32, 64, 128) if inner else (1024, 2048, 4096, 8192)
        found["retile"] = [{"block_cols": block} for block in blocks]
        if form.params["form"] == "multi_pass" and pairs_of(program):
            found["one_pass"] = [{"form": "one_pass"}]
        return found
    width = power_of_two(space.reduced.size)
    counts = (16, 32, 64, 128) if space.inner.runs else (1, 2, 4, 8)
    found["retile"] = [
        {"rows_per_program": count, "warps": row_warps(width * count)}
        for count in counts
        if width * count <= LONGEST_ROW
    ]
    return found


def program_count(graph: Graph, nodes: Sequence[str], form: Templated) -> int:
    """Programs that the kernel of a group is launched with; of the first one, where it has two."""
    (program, space), params = fitted(graph, nodes), form.params
    if form.template == "matmul":
        return product_programs(program, form)
    splits, each = int(params.get("splits", 1)), int(params.get("rows_per_program", 1))
    if form.template == "pointwise":
        return ceil(space.outer.size * space.reduced.size / int(params["block"]))
    if space.inner.runs:
        return splits * space.outer.size * ceil(space.inner.size / each)
    return splits * ceil(space.outer.size / (each if form.template == "rows" else 1))


def tile_code(form: Templated) -> str:
    """The template's size in a few characters: "128x128x32", "b1024", "4 rows", "c4096", "s64"."""
    params = form.params
    if form.template == "matmul":
        return f"{params['block_m']}x{params['block_n']}x{params['block_k']}"
    if form.template == "pointwise":
        return f"b{params['block']}"
    if form.template == "rows_loop":
        return f"c{params['block_cols']}"
    if form.template == "split":
        return f"s{params['splits']}"
    return "1 row" if params["rows_per_program"] == 1 else f"{params['rows_per_program']} rows"
