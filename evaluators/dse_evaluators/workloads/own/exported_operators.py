"""Operators that the graph of an exported program may use: functions of tensors, by name.

Everything that reads or writes files, draws random numbers, returns memory as it was, or changes
the shape of stored tensors is left out.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

from dse.errors import SpecError

_NAMES = """
    abs acos adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d add addcdiv addcmul addmm alias all alpha_dropout amax amin any arange
    argmax argmin asin atan atan2 avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm bitwise_and
    bitwise_not bitwise_or bitwise_xor bmm broadcast_tensors broadcast_to cat ceil celu
    channel_shuffle chunk clamp clamp_max clamp_min clone concat constant_pad_nd contiguous conv1d
    conv2d conv3d conv_transpose1d conv_transpose2d convolution cos cosh cumsum detach diagonal div
    dropout einsum elu embedding eq erf exp expand expand_as expm1 eye feature_dropout fill flatten
    flip floor floor_divide fmod frobenius_norm full full_like gather ge gelu glu group_norm gru gt
    hardshrink hardsigmoid hardswish hardtanh index index_select instance_norm isfinite isinf isnan
    layer_norm le leaky_relu lerp lift_fresh_copy linalg_norm linalg_vector_norm linear linspace log
    log10 log1p log2 log_sigmoid log_softmax logical_and logical_not logical_or logical_xor
    logsumexp lstm lt masked_fill matmul max max_pool1d max_pool2d max_pool2d_with_indices
    max_pool3d maximum mean meshgrid min minimum mish mm movedim mul mv narrow native_batch_norm
    native_group_norm native_layer_norm ne neg new_full new_ones new_zeros norm numpy_T one_hot ones
    ones_like outer pad permute pixel_shuffle pixel_unshuffle pow prelu prod reciprocal
    reflection_pad1d reflection_pad2d relu relu6 remainder repeat repeat_interleave
    replication_pad1d replication_pad2d reshape reshape_as rms_norm roll round rsqrt rsub
    scalar_tensor scaled_dot_product_attention scatter select selu sigmoid sign silu sin sinh size
    slice softmax softmin softplus softsign sort split split_with_sizes sqrt square squeeze stack
    std std_mean sub sum sym_size swapaxes t tan tanh tensor_split tile to topk transpose tril triu
    true_divide type_as unbind unflatten unfold unsafe_split unsqueeze upsample_bicubic2d
    upsample_bilinear2d upsample_nearest1d upsample_nearest2d var var_mean view view_as where zeros
    zeros_like _log_softmax _softmax _to_copy _unsafe_view
    """
_TENSOR_OPERATORS = frozenset(_NAMES.split())
"""Names of functions of PyTorch's library ``aten``; with a final underscore, they work in place."""

_NUMBER_OPERATORS: Mapping[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "floordiv", "truediv", "mod", "neg"),
        *("eq", "ne", "lt", "le", "gt", "ge", "getitem"),
    )
}

_CHECKS = (
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
)
"""Checks that an export adds, which have no result."""

_ATEN, _OPERATOR = "torch.ops.aten.", "_operator."


def is_check(target: str) -> bool:
    """Return whether an operator only checks its inputs, and has no result."""
    return target.startswith(_ATEN) and target.removeprefix(_ATEN).partition(".")[0] in _CHECKS


def works_in_place(target: str) -> bool:
    """Return whether an operator changes its first input."""
    base = target.removeprefix(_ATEN).partition(".")[0]
    return target.startswith(_ATEN) and base.endswith("_") and not base.endswith("__")


def operator_of(target: str) -> Callable[..., Any]:
    """Return the function that an operator of a graph names.

    Args:
        target: name of the operator, such as ``torch.ops.aten.relu.default`` or ``_operator.mul``.

    Raises:
        SpecError: it is none of the functions of this module.
    """
    if target.startswith(_OPERATOR) and target.removeprefix(_OPERATOR) in _NUMBER_OPERATORS:
        return _NUMBER_OPERATORS[target.removeprefix(_OPERATOR)]
    name, _, overload = target.removeprefix(_ATEN).partition(".")
    base = name.removesuffix("_")
    if target.startswith(_ATEN) and base in _TENSOR_OPERATORS:
        packet = getattr(torch.ops.aten, name, None)
        if packet is not None and overload in packet.overloads():
            found: Callable[..., Any] = getattr(packet, overload)
            return found
    raise SpecError(
        f"the operator {target} of the exported program is not read",
        hint="export it to ONNX, or name its module: {python: net.py:make}",
    )
