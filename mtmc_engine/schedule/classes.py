"""What sort of operator a node is: the only thing that regions, labels and costs ask first."""

from __future__ import annotations

from enum import StrEnum

from mtmc_engine.core.graph import Graph, Node, TensorSpec, node_refs


class Sort(StrEnum):
    """How an operator treats its tensors.

    VIEW:      changes only shape, strides or offset; SIZE: integer arithmetic over sizes.
    PART:      selects one result of a node that computes several.
    FACTORY:   makes a tensor from numbers alone.
    POINTWISE: each element of the result needs one element of each operand.
    ROWWISE:   reductions, normalisations, softmax and losses.
    MATMUL, CONVOLUTION, ATTENTION, RECURRENT: arithmetic that libraries tune by hand.
    OTHER:     anything else, an opaque module included.
    """

    VIEW = "view"
    SIZE = "size"
    PART = "part"
    FACTORY = "factory"
    POINTWISE = "pointwise"
    ROWWISE = "rowwise"
    MATMUL = "matmul"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    RECURRENT = "recurrent"
    OTHER = "other"


GLUE = frozenset({Sort.VIEW, Sort.SIZE, Sort.FACTORY})
# Library calls worth keeping while what follows them is fused.
HEAVY = frozenset({Sort.MATMUL, Sort.CONVOLUTION, Sort.ATTENTION, Sort.RECURRENT})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VIEWS = _words(
    """alias as_strided broadcast_tensors broadcast_to chunk detach expand expand_as flatten
    lift_fresh_copy movedim narrow permute real reshape select slice split split_with_sizes squeeze
    swapaxes swapdims t transpose unbind unflatten unfold unsafe_chunk unsafe_split unsqueeze view
    view_as _reshape_alias _unsafe_view"""
)
_FACTORIES = _words(
    """arange empty eye full full_like linspace new_empty new_full new_ones new_zeros ones
    ones_like scalar_tensor zeros zeros_like empty_like lift_fresh"""
)
_POINTWISE = _words(
    """abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and bitwise_not
    bitwise_or bitwise_xor ceil celu clamp clamp_max clamp_min clone contiguous copy copysign cos
    cosh deg2rad div elu eq erf erfc exp exp2 expm1 fill floor floor_divide fmax fmin fmod ge gelu
    gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot isfinite isinf isnan le
    leaky_relu lerp log log10 log1p log2 log_sigmoid logaddexp logical_and logical_not logical_or
    logical_xor logit lt masked_fill maximum minimum mish mul multiply nan_to_num ne neg negative
    pow prelu rad2deg reciprocal relu relu6 remainder round rrelu_with_noise_functional rsqrt rsub
    selu sgn sigmoid sign silu sin sinc sinh softplus softshrink softsign sqrt square sub subtract
    tan tanh threshold to true_divide trunc type_as where xlogy _to_copy _conj
    _prelu_kernel"""
)
_ROWWISE = _words(
    """all amax amin aminmax any argmax argmin batch_norm binary_cross_entropy
    binary_cross_entropy_with_logits cosine_embedding_loss cosine_similarity cross_entropy_loss
    cummax cummin cumprod cumsum frobenius_norm glu group_norm hinge_embedding_loss huber_loss
    instance_norm kl_div l1_loss layer_norm linalg_norm linalg_vector_norm log_softmax
    logcumsumexp logsumexp margin_ranking_loss max mean median min mse_loss multi_margin_loss
    native_batch_norm native_group_norm native_layer_norm nll_loss nll_loss2d nll_loss_nd norm
    nuclear_norm poisson_nll_loss prod rms_norm smooth_l1_loss soft_margin_loss softmax softmin std
    std_mean sum triplet_margin_loss var var_mean _fused_rms_norm _log_softmax
    _native_batch_norm_legit _native_batch_norm_legit_functional
    _native_batch_norm_legit_no_training _softmax"""
)
_BY_SORT = {
    Sort.VIEW: _VIEWS,
    Sort.FACTORY: _FACTORIES,
    Sort.POINTWISE: _POINTWISE,
    Sort.ROWWISE: _ROWWISE,
    Sort.MATMUL: _words(
        "addbmm addmm addmv baddbmm bilinear bmm dot einsum linear matmul mm mv vdot"
    ),
    Sort.CONVOLUTION: _words(
        """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
        convolution"""
    ),
    Sort.ATTENTION: frozenset({"scaled_dot_product_attention"}),
    Sort.RECURRENT: frozenset({"gru", "lstm", "rnn_relu", "rnn_tanh"}),
}
_SORTS = {word: sort for sort, words in _BY_SORT.items() for word in words}


def word_of(node: Node) -> str:
    """The operator's bare name: "softmax" for "aten.softmax.int"."""
    parts = node.op.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def sort_of(node: Node) -> Sort:
    """The sort of one node by itself; a `getitem` counts as PART."""
    if node.op == "opaque":
        return Sort.OTHER
    if node.op == "sym" or not node.out:
        return Sort.SIZE
    word = word_of(node)
    if word == "getitem":
        return Sort.PART
    if word in {"max", "min"} and len(node_refs(node)) == 2:
        return Sort.POINTWISE
    return _SORTS.get(word, Sort.OTHER)


def sorts_of(graph: Graph) -> dict[str, Sort]:
    """The sort of every node by its name; a `getitem` of a view is a view."""
    sorts: dict[str, Sort] = {}
    for node in graph.nodes:
        sort = sort_of(node)
        if sort is Sort.PART and sorts.get(node_refs(node)[0], Sort.VIEW) is Sort.VIEW:
            sort = Sort.VIEW
        sorts[node.name] = sort
    return sorts


def specs_of(graph: Graph) -> dict[str, TensorSpec]:
    """Spec of every value that is a tensor: inputs and first results of nodes."""
    specs = {value.name: value.spec for value in graph.inputs}
    specs.update({node.name: node.out[0] for node in graph.nodes if node.out})
    return specs


def users_of(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Names of the nodes that read each value, in execution order, each once."""
    found: dict[str, dict[str, None]] = {value.name: {} for value in graph.inputs}
    found.update((node.name, {}) for node in graph.nodes)
    for node in graph.nodes:
        for name in node_refs(node):
            if name in found:
                found[name][node.name] = None
    return {name: tuple(readers) for name, readers in found.items()}
