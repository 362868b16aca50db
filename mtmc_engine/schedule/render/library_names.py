"""ATen operators that torch offers under the same name with the same arguments."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Functions of the torch namespace.
TORCH = _words(
    """abs acos acosh adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmv addr
    all amax amin aminmax any arange argmax argmin argsort asin asinh atan atan2 atanh avg_pool1d
    baddbmm bilinear bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor bmm bucketize cat ceil celu channel_shuffle chunk clamp
    clamp_max clamp_min constant_pad_nd conv_transpose1d conv_transpose2d conv_transpose3d
    copysign cos cosh count_nonzero cross cummax cummin cumprod cumsum deg2rad diag diag_embed
    diagonal diff digamma div dot empty empty_like erf erfc erfinv exp exp2 expm1 eye fill flip
    floor floor_divide fmax fmin fmod frac full full_like gather ge grid_sampler gt hardshrink
    heaviside histc hypot index_add index_fill index_put index_select instance_norm inverse
    isfinite isin isinf isnan kron kthvalue le lerp lgamma linspace log log10 log1p log2 logaddexp
    logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit lt masked_fill
    masked_scatter masked_select matmul matrix_exp matrix_power max_pool1d max_pool2d max_pool3d
    mean median minimum mm mul mv nan_to_num nanmean nansum narrow ne neg nonzero numel ones
    ones_like outer pixel_shuffle pixel_unshuffle polar pow prelu prod rad2deg real reciprocal
    relu remainder repeat_interleave roll rot90 round rsqrt scatter scatter_add scatter_reduce
    searchsorted select selu sgn sigmoid sign sin sinc sinh slice_scatter sort split_with_sizes
    sqrt square std std_mean sub sum take take_along_dim tan tanh tensor_split threshold tile topk
    trace trapezoid tril triu trunc unbind unflatten unique_consecutive var var_mean vdot
    view_as_complex view_as_real where xlogy zeros zeros_like"""
)
# Functions of torch.nn.functional.
FUNCTIONAL = _words(
    """adaptive_avg_pool2d adaptive_avg_pool3d avg_pool2d avg_pool3d hardsigmoid hardswish
    logsigmoid one_hot pad relu6 softshrink"""
)
# Losses of torch.nn.functional, where only their defaults are used: torch names a reduction, ATen
# numbers it.
LOSSES = _words(
    """binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss
    hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss smooth_l1_loss
    soft_margin_loss triplet_margin_loss"""
)
