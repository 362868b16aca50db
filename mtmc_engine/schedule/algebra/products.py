"""Products with fixed weights: what follows them is computed into the weights, once.

Weights are scaled in float32 at least and rounded once to their own dtype.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from mtmc_engine.core.graph import Arg, Node, TensorSpec
from mtmc_engine.schedule.algebra.edit import Edit, spec_of
from mtmc_engine.schedule.algebra.rules import rule
from mtmc_engine.schedule.algebra.site import Site, dims_of, is_number
from mtmc_engine.schedule.classes import HEAVY, Sort, word_of
from mtmc_engine.schedule.ops import RULES as TEMPLATE_RULES

_CONVOLUTIONS = frozenset({"conv1d", "conv2d", "conv3d"})
_TRANSPOSED = frozenset({"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"})
_HALF = frozenset({"float16", "bfloat16"})
# What a merged product must save of both products' work.
_LEAST_SAVED = 0.1


@dataclass(frozen=True)
class _Affine:
    """y * scale + shift per channel: numbers, or the names of tensors of that many channels."""

    scale: Arg
    shift: Arg
    nodes: tuple[Node, ...]


@rule(
    "affine",
    "the scale and shift after it go into its weights, computed once",
    at=("linear", *_CONVOLUTIONS, *_TRANSPOSED),
)
def affine(site: Site) -> Edit | None:
    """A linear layer or convolution takes over the batch norm, scale or shift that follows it."""
    if not (_is_batched(site) and _scales_whole_rows(site) and _has_fixed_weights(site)):
        return None
    reader = site.only_reader()
    channels = _channels(site)
    found = _affine_of(site, reader, channels) if reader is not None else None
    if found is None:
        return None
    last = found.nodes[-1]
    if (
        site.arg(2) is None
        and found.shift is not None
        and not _is_vector(site, found.shift, channels)
    ):
        return None  # how many channels there are shows only in a call
    weight, bias = site.arg(1), site.arg(2)
    weight = _scaled_weight(site, weight, found.scale)
    bias = _moved_bias(site, bias, found, channels)
    site.put(last, site.node.op, (site.arg(0), weight, bias, *site.node.args[3:]), last.name)
    return site.replaced(*found.nodes)


@rule(
    "bias",
    "its bias joins the kernel that follows, since the library adds it in a pass of its own",
    at=(*_CONVOLUTIONS, *_TRANSPOSED),
)
def bias(site: Site) -> Edit | None:
    """A convolution leaves its bias to what follows: torch adds it by a kernel of its own."""
    node = site.node
    given = site.arg(2)
    if (
        given is None
        or not _is_batched(site)
        or node.name in site.facts.results
        or not _is_fusable(site, node)
    ):
        return None
    readers = site.facts.users[node.name]
    first = site.facts.nodes[readers[0]]
    rank, channels = len(node.out[0].shape), node.out[0].shape[1]
    plain = site.put(
        node,
        node.op,
        (site.arg(0), site.arg(1), None, *node.args[3:]),
        site.fresh(word_of(node)),
    )
    wide = site.fresh("bias")
    spec = spec_of((channels, *(1,) * (rank - 2)), node.out[0].dtype)
    shape = [-1, *(1,) * (rank - 2)]
    made = Node(wide, "aten.view.default", (given, shape), {}, (spec,), origin=site.origin(first))
    site.made.append(made)
    site.put(node, "aten.add.Tensor", (plain, f"%{wide}"), at=site.origin(first))
    return site.replaced()


def _is_fusable(site: Site, node: Node) -> bool:
    """Whether every reader can have a kernel of its own."""
    readers = [site.facts.nodes[name] for name in site.facts.users[node.name]]
    return bool(readers) and all(
        reader.op in TEMPLATE_RULES and site.facts.sorts[reader.name] not in {*HEAVY, Sort.VIEW}
        for reader in readers
    )


@rule(
    "total",
    "the sum over its columns is one product with the sum of its weights",
    at=("linear",),
)
def total(site: Site) -> Edit | None:
    """sum_j (x W^T + b)_j = x (sum_j W_j) + sum_j b_j, and the same for a mean."""
    reader = site.only_reader()
    if reader is None:
        return None
    word = word_of(reader)
    out = site.node.out[0]
    rank, keep = len(out.shape), bool(site.arg(2, False, reader))
    dims = site.arg(1, None, reader)
    if reader.op not in {"aten.sum.dim_IntList", "aten.mean.dim"}:
        return None
    if reader.kwargs or dims is None or dims_of(dims, rank) != [rank - 1]:
        return None
    if reader.out[0].dtype != out.dtype or rank < 2:
        return None
    weight = _summed(site, site.arg(1), word)
    given = site.arg(2)
    offset = _summed(site, given, word) if given is not None else None
    narrow = TensorSpec((*out.shape[:-1], 1), out.dtype, (*out.dims[:-1], "1") if out.dims else ())
    if keep:
        site.put(reader, site.node.op, (site.arg(0), weight, offset), reader.name)
    else:
        row = site.fresh(f"{site.node.name}_{word}")
        made = Node(row, site.node.op, (site.arg(0), weight, offset), {}, (narrow,))
        site.made.append(_like(made, site))
        site.put(reader, "aten.squeeze.dim", (f"%{row}", -1), reader.name)
    return site.replaced(reader)


def _like(node: Node, site: Site) -> Node:
    return replace(
        node, module=site.node.module, line=site.node.line, origin=site.origin(site.node)
    )


def _summed(site: Site, arg: Arg, word: str) -> str:
    """The sum or mean over the first dimension, which keeps its place with size one."""
    spec = site.spec(arg)
    assert spec is not None
    name = f"{arg[1:]}_{word}"
    narrow = replace(spec, shape=(1, *spec.shape[1:]), dims=("1", *spec.dims[1:])[: len(spec.dims)])
    op = {"sum": "aten.sum.dim_IntList", "mean": "aten.mean.dim"}[word]
    if spec.dtype not in _HALF:
        return site.derived(name, op, (arg, [0], True), narrow)
    # Half the digits of a half are lost in a long sum: it is rounded once, at its end.
    wide = site.derived(
        f"{name}_wide",
        op,
        (arg, [0], True),
        replace(narrow, dtype="float32"),
        dtype="torch.float32",
    )
    return _cast(site, wide, spec.dtype, name)


@rule(
    "chain",
    "it and the layer after are one product, since nothing but a sum stands between",
    at=("linear",),
)
def chain(site: Site) -> Edit | None:
    """(x A^T + a) B^T + b = x (B A)^T + (B a + b), where that is less work."""
    reader = site.only_reader()
    if reader is None or word_of(reader) != "linear":
        return None
    first, second = site.arg(1), site.arg(1, None, reader)
    if reader.args[0] != f"%{site.node.name}" or not (
        site.is_fixed(first) and site.is_fixed(second)
    ):
        return None
    one, two = site.spec(first), site.spec(second)
    if one is None or two is None or one.dtype != two.dtype:
        return None
    hidden, inner, outer = one.shape[0], one.shape[1], two.shape[0]
    now = hidden * (inner + outer)
    if inner * outer > (1 - _LEAST_SAVED) * now or one.dtype in _HALF:
        return None
    if any(
        g is not None and not site.is_fixed(g) for g in (site.arg(2), site.arg(2, None, reader))
    ):
        return None
    joined = spec_of((outer, inner), one.dtype)
    weight = site.derived(f"{second[1:]}_joined", "aten.mm.default", (second, first), joined)
    offset = _joined_bias(site, reader, second, spec_of((outer,), one.dtype))
    site.put(reader, reader.op, (site.arg(0), weight, offset), reader.name)
    return site.replaced(reader)


def _joined_bias(site: Site, reader: Node, second: str, spec: TensorSpec) -> Arg:
    inner, outer = site.arg(2), site.arg(2, None, reader)
    if inner is None:
        return outer
    moved = site.derived("bias_moved", "aten.mv.default", (second, inner), spec)
    if outer is None:
        return moved
    return site.derived("bias_joined", "aten.add.Tensor", (outer, moved), spec)


def _is_batched(site: Site) -> bool:
    """Whether channels are where a batch of images has them: torch takes a single one, too."""
    word, rank = word_of(site.node), len(site.node.out[0].shape)
    return word == "linear" or rank == int(word[-2]) + 2


def _scales_whole_rows(site: Site) -> bool:
    """Whether a channel of the result has weights of its own along one dimension."""
    return word_of(site.node) not in _TRANSPOSED or bool(site.arg(6, 1) == 1)


def _has_fixed_weights(site: Site) -> bool:
    given = site.arg(2)
    return site.is_fixed(site.arg(1)) and (given is None or site.is_fixed(given))


def _channels(site: Site) -> int:
    shape = site.node.out[0].shape
    return shape[-1] if word_of(site.node) == "linear" else shape[1]


def _affine_of(site: Site, reader: Node, channels: int) -> _Affine | None:
    """What the reader of a layer does to each channel; None where it does something else."""
    if reader.out[0].dtype != site.node.out[0].dtype or reader.kwargs:
        return None
    if word_of(reader) == "_native_batch_norm_legit_no_training":
        return _batch_norm(site, reader)
    if word_of(reader) not in _ARITHMETIC or len(reader.args) != 2:
        return None
    left, right = reader.args
    if left == right or reader.out[0].shape != site.node.out[0].shape:
        return None
    first = left == f"%{site.node.name}"
    vector = _per_channel(site, right if first else left, channels)
    return None if vector is None else _arithmetic(site, reader, vector, first)


_ARITHMETIC = frozenset({"mul", "div", "add", "sub", "rsub"})


def _arithmetic(site: Site, reader: Node, vector: Arg, first: bool) -> _Affine | None:
    """What an operator does with a number or a vector; first: whether the layer stands first."""
    match word_of(reader), first:
        case "mul", _:
            return _Affine(vector, None, (reader,))
        case "div", True if vector != 0:
            return _Affine(_reciprocal(site, vector), None, (reader,))
        case "add", _:
            return _Affine(None, vector, (reader,))
        case ("sub", True) | ("rsub", False):
            return _Affine(None, _negative(site, vector), (reader,))
        case ("sub", False) | ("rsub", True):
            return _Affine(-1, vector, (reader,))
    return None


def _per_channel(site: Site, arg: Arg, channels: int) -> Arg:
    """An operand as a number or a vector over the channels; None where it is neither."""
    if is_number(arg):
        return arg
    spec = site.spec(arg)
    if spec is None or not site.is_fixed(arg) or spec.dtype != site.node.out[0].dtype:
        return None
    arg = _widened(site, arg)
    rank = len(site.node.out[0].shape)
    padded = (1,) * (rank - len(spec.shape)) + spec.shape
    at = rank - 1 if word_of(site.node) == "linear" else 1
    if any(size != 1 for dim, size in enumerate(padded) if dim != at):
        return None
    if padded[at] not in {1, channels}:
        return None
    if spec.shape == (channels,):
        return arg
    return site.derived(
        f"{arg[1:]}_row",
        "aten.view.default",
        (arg, [-1]),
        spec_of((padded[at],), _wide(spec.dtype)),
    )


def _batch_norm(site: Site, reader: Node) -> _Affine | None:
    """Inference with running statistics: scale = weight / sqrt(var + eps)."""
    part = site.only_reader(reader)
    if part is None or part.op != "getitem" or part.args[1] != 0:
        return None
    _, weight, offset, mean, variance, _, eps = reader.args
    dtype = site.node.out[0].dtype
    if word_of(site.node) == "linear" and len(site.node.out[0].shape) != 2:
        return None  # the norm's channels are the second dimension, the layer's the last
    for arg in (weight, offset, mean, variance):
        seen = site.spec(arg)
        if arg is not None and (
            seen is None or not site.is_fixed(arg) or seen.dtype not in {dtype, _wide(dtype)}
        ):
            return None
    weight, offset, mean, variance = (
        _widened(site, arg) for arg in (weight, offset, mean, variance)
    )
    spec = site.spec(variance)
    assert spec is not None
    padded = site.derived("variance", "aten.add.Tensor", (variance, eps), spec)
    scale = site.derived("rstd", "aten.rsqrt.default", (padded,), spec)
    if weight is not None:
        scale = site.derived("scale", "aten.mul.Tensor", (weight, scale), spec)
    shift = site.derived("moved_mean", "aten.mul.Tensor", (mean, scale), spec)
    if offset is None:
        shift = site.derived("shift", "aten.neg.default", (shift,), spec)
    else:
        shift = site.derived("shift", "aten.sub.Tensor", (offset, shift), spec)
    return _Affine(scale, shift, (reader, part))


def _is_vector(site: Site, arg: Arg, channels: int) -> bool:
    spec = site.spec(arg)
    return spec is not None and spec.shape == (channels,)


def _reciprocal(site: Site, vector: Arg) -> Arg:
    if is_number(vector):
        return 1.0 / vector
    spec = site.spec(vector)
    assert spec is not None
    return site.derived("scale", "aten.reciprocal.default", (vector,), spec)


def _negative(site: Site, vector: Arg) -> Arg:
    if is_number(vector):
        return -vector
    spec = site.spec(vector)
    assert spec is not None
    return site.derived("shift", "aten.neg.default", (vector,), spec)


def _scaled_weight(site: Site, weight: Arg, scale: Arg) -> Arg:
    if scale is None:
        return weight
    spec = site.spec(weight)
    assert spec is not None
    wide = _widened(site, weight)
    factor = _along(site, scale, len(spec.shape), 1 if word_of(site.node) in _TRANSPOSED else 0)
    name = f"{weight[1:].partition('_scaled')[0]}_scaled"
    made = site.derived(name, "aten.mul.Tensor", (wide, factor), _as_wide(spec))
    return _cast(site, made, spec.dtype, name)


def _moved_bias(site: Site, given: Arg, found: _Affine, channels: int) -> Arg:
    """given * scale + shift; None where it is nothing."""
    dtype = site.node.out[0].dtype
    spec = spec_of((channels,), _wide(dtype))
    value = given
    if value is not None:
        value = _widened(site, value)
    if value is not None and found.scale is not None:
        value = site.derived("bias", "aten.mul.Tensor", (value, found.scale), spec)
    if value is None and found.shift is None:
        return None
    if found.shift is None:
        return _cast(site, value, dtype, "bias")
    if value is not None:
        value = site.derived("bias", "aten.add.Tensor", (value, found.shift), spec)
    else:
        value = found.shift
    return _cast(site, value, dtype, "bias")


def _along(site: Site, scale: Arg, rank: int, at: int) -> Arg:
    """A vector as a tensor that broadcasts along one dimension; a number as it is."""
    spec = site.spec(scale)
    if spec is None:
        return scale
    before, after = (1,) * at, (1,) * (rank - at - 1)
    wide = spec_of((*before, spec.shape[0], *after), spec.dtype)
    return site.derived("factor", "aten.view.default", (scale, [*before, -1, *after]), wide)


def _wide(dtype: str) -> str:
    return "float32" if dtype in _HALF else dtype


def _as_wide(spec: TensorSpec) -> TensorSpec:
    return spec_of(spec.shape, _wide(spec.dtype))


def _widened(site: Site, arg: Arg) -> Arg:
    """Halves as float32, everything else as it is."""
    spec = site.spec(arg)
    if spec is None or spec.dtype not in _HALF:
        return arg
    return site.derived(
        f"{arg[1:]}_wide", "aten._to_copy.default", (arg,), _as_wide(spec), dtype="torch.float32"
    )


def _cast(site: Site, arg: str, dtype: str, wanted: str) -> str:
    spec = site.spec(arg)
    assert spec is not None
    if spec.dtype == dtype:
        return arg
    return site.derived(
        wanted, "aten._to_copy.default", (arg,), spec_of(spec.shape, dtype), dtype=f"torch.{dtype}"
    )
