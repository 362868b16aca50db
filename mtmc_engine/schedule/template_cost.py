"""What one rendered kernel costs: external values once, and what its parameters make of it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import ceil

from mtmc_engine.core.graph import TensorSpec
from mtmc_engine.core.program import Group, Templated
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.classes import GLUE, Sort, word_of
from mtmc_engine.schedule.identity import Same
from mtmc_engine.schedule.roofline import (
    COPY_EFFICIENCY,
    LATENCY_US,
    Kernel,
    Product,
    Tile,
    bytes_per_us,
    flops_per_us,
    item_bytes,
    memory_us,
    product_us,
    resident_programs,
    scattered_us,
    sweeps_in_memory,
)
from mtmc_engine.schedule.work import (
    Facts,
    bytes_touched,
    dependent_reductions,
    dot_mode,
    plain_flops,
    product_of,
    rows_of,
    stored_bytes,
)


def outside_bytes(facts: Facts, names: tuple[str, ...]) -> tuple[int, int]:
    """Bytes that a group has to read from outside and to write for others, each once."""
    return _outside_bytes(Same(facts), names)


@lru_cache(maxsize=8192)
def _outside_bytes(same: Same[Facts], names: tuple[str, ...]) -> tuple[int, int]:
    facts, inside = same.value, frozenset(names)
    entering = dict.fromkeys(
        read for name in names for read in facts.reads[name] if read not in inside
    )
    read = sum(bytes_touched(facts, name, inside) for name in entering)
    leaving = [n for n in names if n in facts.results or not inside.issuperset(facts.users[n])]
    return read, sum(stored_bytes(facts, name) for name in leaving)


def copied_bytes(facts: Facts, names: tuple[str, ...]) -> int:
    """Bytes that a launcher moves to make its operands dense: views from outside that are not."""
    inside = frozenset(names)
    entering = {read for name in names for read in facts.reads[name] if read not in inside}
    return sum(2 * facts.specs[name].nbytes for name in entering if _is_strided(facts, name))


def _is_strided(facts: Facts, name: str) -> bool:
    while name in facts.nodes and facts.sorts[name] is Sort.VIEW:
        if word_of(facts.nodes[name]) in _STRIDED and name in facts.specs:
            return True
        name = next(iter(facts.reads[name]), "")
    return False


# Views whose elements are, as a rule, not side by side in memory.
_STRIDED = frozenset({"as_strided", "expand", "movedim", "permute", "t", "transpose", "unfold"})


def group_flops(facts: Facts, names: tuple[str, ...]) -> int:
    """Operations of a group of pointwise, row-wise and matrix-product nodes."""
    total = 0
    for name in names:
        node = facts.nodes[name]
        if facts.sorts[name] is Sort.MATMUL:
            total += product_of(facts, node).flops
        elif facts.sorts[name] not in GLUE | {Sort.PART}:
            total += plain_flops(facts, node)
    return total


def template_kernels(facts: Facts, task: Task, group: Group, form: Templated) -> tuple[Kernel, ...]:
    """The launches of a templated group: copies of strided operands, the kernel, a last sum."""
    price = {"matmul": _product, "pointwise": _pointwise, "split": _split}
    kernels = [*price.get(form.template, _rows)(facts, task, group, form)]
    # The matmul template walks its operands by their strides.
    copied = 0 if form.template == "matmul" else copied_bytes(facts, group.nodes)
    if copied:
        copying_us = copied / (bytes_per_us(task.device) * COPY_EFFICIENCY)
        kernels.insert(0, Kernel(copied, 0, copying_us))
    if any(_is_total(facts, name) for name in group.nodes):
        kernels.append(Kernel(0, 0, 0.0))
    return tuple(kernels)


def _is_total(facts: Facts, name: str) -> bool:
    """Whether a node reduces a whole tensor to a number: its last sum is a launch of its own."""
    node = facts.nodes[name]
    return facts.sorts[name] is Sort.ROWWISE and all(spec.numel == 1 for spec in node.out)


def number(form: Templated, name: str, default: int) -> int:
    """An integer parameter of a template."""
    return int(form.params.get(name, default))


def tile_of(form: Templated) -> Tile:
    """The tile of a matmul template."""
    return Tile(
        number(form, "block_m", 128),
        number(form, "block_n", 128),
        number(form, "block_k", 32),
        number(form, "warps", 8),
        number(form, "stages", 3),
    )


def _product(facts: Facts, task: Task, group: Group, form: Templated) -> tuple[Kernel, ...]:
    node = next(facts.nodes[n] for n in group.nodes if facts.sorts[n] is Sort.MATMUL)
    product = product_of(facts, node)
    read, written = outside_bytes(facts, group.nodes)
    operands = product.batch * product.k * (product.m + product.n) * product.item
    mode = str(form.params.get("dot", dot_mode(task, facts.operands(node)[0].dtype)))
    extra = max(0, read - operands) + written
    flops, splits = group_flops(facts, group.nodes), number(form, "splits", 1)
    if form.params.get("sweep"):
        product, extra = _swept(task, product, tile_of(form), extra)
    if splits == 1:
        time_us = product_us(task.device, product, tile_of(form), mode, extra)
        return (Kernel(read + written, flops, time_us),)
    share = replace(product, batch=product.batch * splits, k=ceil(product.k / splits))
    parts = share.batch * share.m * share.n * 4
    time_us = product_us(task.device, share, tile_of(form), mode, parts)
    joined_us = (parts + extra) / (bytes_per_us(task.device) * COPY_EFFICIENCY)
    return (
        Kernel(operands + parts, flops, time_us),
        Kernel(parts + extra, splits * product.m * product.n, LATENCY_US + joined_us),
    )


def _swept(task: Task, product: Product, tile: Tile, extra: int) -> tuple[Product, int]:
    """One column of tiles as deep as all of them, and the bytes besides its operands.

    The rows are read again for each tile: from L2 where those of all programs fit there.
    """
    columns = ceil(product.n / tile.n)
    row_bytes = product.k * product.item
    resident = task.device.sms * tile.m * row_bytes
    again = (columns - 1) * product.batch * product.m * row_bytes
    swept = replace(product, n=tile.n, k=product.k * columns)
    return swept, extra - (again if resident <= task.device.l2_bytes else 0)


def _pointwise(facts: Facts, task: Task, group: Group, form: Templated) -> tuple[Kernel, ...]:
    read, written = outside_bytes(facts, group.nodes)
    # A product that is pointwise has a diagonal matrix: one operation an element.
    products = [name for name in group.nodes if facts.sorts[name] is Sort.MATMUL]
    flops = group_flops(facts, tuple(name for name in group.nodes if name not in products))
    flops += sum(facts.nodes[name].out[0].numel for name in products)
    elements = max(node.out[0].numel for n in group.nodes if (node := facts.nodes[n]).out)
    block, warps = number(form, "block", 1024), number(form, "warps", 4)
    item = max(1, written // max(1, elements)) if written else 4
    per_thread = max(1, block // (warps * 32))
    time_us = memory_us(
        task.device,
        read + written,
        programs=ceil(elements / block),
        warps=warps,
        bytes_in_flight=block * (read / max(1, elements)),
        registers=24 + 3 * per_thread,
        vector_bytes=per_thread * item,
    )
    time_us += _across_us(facts, task, group, block)
    return (Kernel(read + written, flops, max(time_us, _arithmetic(task, flops))),)


def _across_us(facts: Facts, task: Task, group: Group, block: int) -> float:
    """Time beyond a plain walk for operands that lie in another order than the result.

    A block spans the operand's innermost dimension and as much of the result's as is left.
    """
    inside = frozenset(group.nodes)
    entering = {read for name in group.nodes for read in facts.reads[name] if read not in inside}
    result = next(out[0] for name in reversed(group.nodes) if (out := facts.nodes[name].out))
    read = [facts.specs[name] for name in entering if name in facts.specs]
    crossed = [s for s in read if s.shape == result.shape and s.order != result.order]
    return sum(
        scattered_us(task.device, s.nbytes, item_bytes(s.dtype) * _run(block, s)) for s in crossed
    )


def _run(block: int, spec: TensorSpec) -> int:
    innermost = spec.shape[spec.order[-1]] if spec.order else spec.shape[-1]
    return max(1, block // _power_of_two(innermost))


def _split(facts: Facts, task: Task, group: Group, form: Templated) -> tuple[Kernel, ...]:
    """Programs that share rows, then programs that join the parts and write the results."""
    read, written = outside_bytes(facts, group.nodes)
    flops = group_flops(facts, group.nodes)
    rows, columns, item = _widest_rows(facts, group.nodes)
    splits, warps = number(form, "splits", 64), number(form, "warps", 4)
    width = number(form, "block_cols", 2048) * number(form, "rows_per_program", 1)
    programs = max(1, rows // number(form, "rows_per_program", 1)) * splits
    sharing_us = memory_us(
        task.device,
        read,
        programs=programs,
        warps=warps,
        bytes_in_flight=min(width, ceil(rows * columns / programs)) * item,
        registers=24 + 3 * width // (warps * 32),
    )
    wide = written > rows * 16
    again = read if wide else 0
    waiting = sweeps_in_memory(task.device, 2, read) - 1 if wide else 0.0
    joining_us = memory_us(
        task.device,
        read * waiting + written,
        programs=rows * columns / width if wide else rows,
        warps=warps,
        bytes_in_flight=(width if wide else splits) * item,
    )
    return (
        Kernel(read, flops, max(sharing_us, _arithmetic(task, flops))),
        Kernel(again + written, 0, LATENCY_US + joining_us),
    )


def _rows(facts: Facts, task: Task, group: Group, form: Templated) -> tuple[Kernel, ...]:
    read, written = outside_bytes(facts, group.nodes)
    flops = group_flops(facts, group.nodes)
    rows, columns, item = _widest_rows(facts, group.nodes)
    passes = _passes(facts, group.nodes, form, written, rows)
    nbytes = read * passes + written
    at_once = number(form, "rows_per_program", 1)
    warps = number(form, "warps", 4)
    width = number(form, "block_cols", _power_of_two(columns))
    per_thread = max(1, at_once * width // (warps * 32))
    registers, programs = 24 + 2 * per_thread, ceil(rows / at_once)
    resident = min(programs, task.device.sms * resident_programs(task.device, warps, registers))
    waiting = sweeps_in_memory(task.device, passes, resident * at_once * columns * item)
    time_us = memory_us(
        task.device,
        read * waiting + written,
        programs=programs,
        warps=warps,
        bytes_in_flight=at_once * min(width, columns) * item,
        registers=registers,
        vector_bytes=per_thread * item if width % 4 == 0 else item,
    )
    return (Kernel(nbytes, flops, max(time_us, _arithmetic(task, flops))),)


def _passes(facts: Facts, names: tuple[str, ...], form: Templated, written: int, rows: int) -> int:
    """How often a row is read: once where it stays in registers, else once a dependent step.

    In one-pass form two statistics that need one another share a step.
    """
    if form.template == "rows":
        return 1
    steps = max(1, dependent_reductions(facts, names))
    if form.params.get("form") == "one_pass":
        steps = ceil(steps / 2)
    return steps + (1 if written > rows * 16 else 0)


def _widest_rows(facts: Facts, names: tuple[str, ...]) -> tuple[int, int, int]:
    """Rows, columns and item bytes of the largest row-wise node of a group."""
    found = [facts.nodes[n] for n in names if facts.sorts[n] is Sort.ROWWISE]
    products = [facts.nodes[n] for n in names if facts.sorts[n] is Sort.MATMUL]
    if products and not found:
        product = product_of(facts, products[0])
        return product.batch * product.m * product.n, product.k, product.item
    if not found:
        return 1, max(1, *(n.out[0].numel for x in names if (n := facts.nodes[x]).out)), 4
    widest = max(found, key=lambda node: max((s.numel for s in facts.operands(node)), default=0))
    rows, columns = rows_of(facts, widest)
    spec = facts.operands(widest)[0]
    return rows, columns, spec.nbytes // max(1, spec.numel)


def _arithmetic(task: Task, flops: int) -> float:
    return flops / flops_per_us(task.device, "fp32")


def _power_of_two(count: int) -> int:
    return 1 << max(0, count - 1).bit_length()
