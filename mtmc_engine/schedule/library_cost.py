"""What library calls cost: each operator reads its inputs and writes its results."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mtmc_engine.core.graph import Node, node_refs
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.classes import GLUE, Sort, word_of
from mtmc_engine.schedule.roofline import (
    MAX_WARPS_PER_SM,
    Kernel,
    bytes_per_us,
    flops_per_us,
    item_bytes,
    library_product_us,
    memory_us,
    scattered_us,
    sweeps_in_memory,
)
from mtmc_engine.schedule.work import (
    Facts,
    bytes_touched,
    dot_mode,
    heavy_flops,
    plain_flops,
    product_of,
    reduced_dims,
    rows_of,
)


@dataclass(frozen=True)
class Composite:
    """How eager mode runs an operator of several passes.

    reads:    times that it reads its first operand.
    spills:   full-size intermediates that it writes and reads again.
    launches: kernels.
    by_row:   one block of threads works on one row, so that few rows leave the card idle.
    """

    reads: int = 1
    spills: int = 0
    launches: int = 1
    by_row: bool = False


_PLAIN = Composite()
_COMPOSITES = {
    "layer_norm": Composite(reads=2, by_row=True),
    "native_layer_norm": Composite(reads=2, by_row=True),
    "rms_norm": Composite(reads=2, by_row=True),
    "group_norm": Composite(reads=2, launches=2, by_row=True),
    "native_group_norm": Composite(reads=2, launches=2, by_row=True),
    "batch_norm": Composite(reads=2, launches=2, by_row=True),
    "_native_batch_norm_legit_functional": Composite(reads=2, launches=2, by_row=True),
    "logsumexp": Composite(reads=2, spills=2, launches=6),
    "cross_entropy_loss": Composite(spills=1, launches=2, by_row=True),
    "mse_loss": Composite(spills=1, launches=2),
    "l1_loss": Composite(spills=1, launches=2),
    "smooth_l1_loss": Composite(spills=1, launches=2),
    "huber_loss": Composite(spills=1, launches=2),
    "kl_div": Composite(spills=3, launches=5),
    "binary_cross_entropy": Composite(spills=1, launches=2),
    "binary_cross_entropy_with_logits": Composite(spills=4, launches=6),
    "cosine_similarity": Composite(reads=3, spills=2, launches=8),
    "softplus": _PLAIN,
}
_ENOUGH_PROGRAMS = 1_000_000
# A softmax keeps a row of this many bytes on chip; longer rows are read three times.
_SOFTMAX_ROW_BYTES = 48 * 1024
_CONVOLUTION_EFFICIENCY = {False: 0.5, True: 0.1}
_ATTENTION_EFFICIENCY = 0.5
_RECURRENT_EFFICIENCY = 0.2


def library_kernels(facts: Facts, task: Task, node: Node) -> tuple[Kernel, ...]:
    """The launches of one library call, none for glue."""
    sort = facts.sorts[node.name]
    if sort in GLUE or sort is Sort.PART:
        return ()
    if sort is Sort.MATMUL:
        return (_product(facts, task, node),)
    if sort in {Sort.CONVOLUTION, Sort.ATTENTION, Sort.RECURRENT}:
        return (_heavy(facts, task, node), *_around(facts, task, node))
    return _passes(facts, task, node)


def _operand_bytes(facts: Facts, node: Node) -> int:
    return sum(bytes_touched(facts, name, {node.name}) for name in facts.reads[node.name])


def _result_bytes(facts: Facts, node: Node) -> int:
    """Bytes of the results that are read or returned; all where nothing selects among them."""
    parts = [facts.nodes[user] for user in facts.users[node.name]]
    if len(node.out) > 1 and all(facts.sorts[part.name] is Sort.PART for part in parts):
        return sum(part.out[0].nbytes for part in parts)
    return sum(spec.nbytes for spec in node.out)


def _product(facts: Facts, task: Task, node: Node) -> Kernel:
    product = product_of(facts, node)
    mode = dot_mode(task, node.out[0].dtype)
    result = _result_bytes(facts, node)
    time_us = library_product_us(task.device, product, mode, result)
    return Kernel(_operand_bytes(facts, node) + result, product.flops, time_us)


def _heavy(facts: Facts, task: Task, node: Node) -> Kernel:
    efficiency = {
        Sort.CONVOLUTION: _CONVOLUTION_EFFICIENCY["transpose" in node.op],
        Sort.ATTENTION: _ATTENTION_EFFICIENCY,
        Sort.RECURRENT: _RECURRENT_EFFICIENCY,
    }[facts.sorts[node.name]]
    flops = heavy_flops(facts, node)
    nbytes = _operand_bytes(facts, node) + _result_bytes(facts, node)
    # Convolutions may use TF32 by torch's own default, whatever the switch for products says.
    dtype = node.out[0].dtype
    is_conv = facts.sorts[node.name] is Sort.CONVOLUTION and dtype == "float32"
    mode = "tf32" if is_conv else dot_mode(task, dtype)
    arithmetic = flops / (flops_per_us(task.device, mode) * efficiency)
    return Kernel(nbytes, flops, max(arithmetic, nbytes / (bytes_per_us(task.device) * 0.8)))


def _around(facts: Facts, task: Task, node: Node) -> tuple[Kernel, ...]:
    """Kernels beside a convolution's own.

    torch adds the bias to cuDNN's result; its own depthwise kernels add it themselves. cuDNN's
    tensor-core kernels of images read channels last, those of half precision write them, too:
    other layouts are converted.
    """
    if facts.sorts[node.name] is not Sort.CONVOLUTION:
        return ()
    moved: list[int] = []
    source, groups = facts.specs[node_refs(node)[0]], node.args[6] if len(node.args) > 6 else 1
    depthwise = groups != 1 and groups == source.shape[1]
    if len(node.args) > 2 and node.args[2] is not None and not depthwise:
        moved.append(node.out[0].nbytes)
    if len(source.shape) == 4 and groups == 1 and task.device.arch >= 80:
        half = source.dtype in {"float16", "bfloat16"}
        if not source.order and (half or source.dtype == "float32"):
            moved.append(source.nbytes)
        if half and not node.out[0].order:
            moved.append(node.out[0].nbytes)
    return tuple(_copy(task, nbytes) for nbytes in moved)


def _copy(task: Task, nbytes: int) -> Kernel:
    """A kernel that reads and writes so many bytes."""
    time_us = memory_us(
        task.device, 2 * nbytes, programs=_ENOUGH_PROGRAMS, warps=8, bytes_in_flight=8 * 32 * 16
    )
    return Kernel(2 * nbytes, 0, time_us)


def _passes(facts: Facts, task: Task, node: Node) -> tuple[Kernel, ...]:
    form = _composite(facts, node)
    operands = facts.operands(node)
    first = operands[0].nbytes if operands else 0
    nbytes = _operand_bytes(facts, node) + _result_bytes(facts, node) + 2 * first * form.spills
    # Grids of plain kernels always fill the card; one block a row may not.
    programs, warps, waiting = _ENOUGH_PROGRAMS, 8, float(form.reads)
    if form.by_row:
        programs, warps = rows_of(facts, node)[0], 16
        resident = min(programs, task.device.sms * MAX_WARPS_PER_SM // warps)
        waiting = sweeps_in_memory(task.device, form.reads, first * resident / programs)
    time_us = memory_us(
        task.device,
        nbytes + first * (waiting - 1),
        programs=programs,
        warps=warps,
        bytes_in_flight=warps * 32 * 16,
    )
    nbytes += first * (form.reads - 1)
    if operands and operands[0].order != node.out[0].order and word_of(node) == "contiguous":
        time_us += scattered_us(task.device, first, item_bytes(operands[0].dtype))
    arithmetic = plain_flops(facts, node) / flops_per_us(task.device, "fp32")
    whole = Kernel(nbytes, plain_flops(facts, node), max(time_us, arithmetic))
    return (whole,) + (Kernel(0, 0, 0.0),) * (form.launches - 1)


def _composite(facts: Facts, node: Node) -> Composite:
    word = word_of(node)
    if word not in {"softmax", "log_softmax", "_softmax", "_log_softmax"}:
        return _COMPOSITES.get(word, _PLAIN)
    spec = facts.operands(node)[0]
    last = reduced_dims(node, len(spec.shape))[-1:] == [len(spec.shape) - 1]
    row_bytes = spec.nbytes // max(1, prod(spec.shape[:-1]))
    on_chip = last and row_bytes <= _SOFTMAX_ROW_BYTES
    return Composite(reads=1 if on_chip else 3, by_row=last)
