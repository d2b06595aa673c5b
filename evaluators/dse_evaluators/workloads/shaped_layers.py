"""Layers of products and convolutions from the shapes of their operands."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from dse_evaluators.workloads.layers import Layer, product

Shape = tuple[int, ...]


def convolve_shapes(
    name: str,
    images: Shape,
    filters: Shape,
    results: Shape,
    *,
    strides: Sequence[int] | None = None,
    groups: int = 1,
) -> Layer:
    """Build the layer of a convolution; the images of a batch are stacked vertically.

    A convolution whose strides differ, or with three or more axes, becomes a matrix product with
    one row per window, which ignores that windows overlap; dilation is ignored.

    Args:
        name: name of the layer.
        images: shape of the inputs, (n, channels, ...).
        filters: shape of the weights, (filters, channels of a group, ...).
        results: shape of the outputs, (n, filters, ...).
        strides: the stride of each axis; 1 by default.
        groups: number of groups.
    """
    count, channels, *_ = images
    outputs, _, *window = filters
    _, _, *after = results
    steps = strides or (1,) * len(window)
    moving = {stride for stride, side in zip(steps, after, strict=True) if side > 1} or {1}
    if len(window) > 2 or len(moving) > 1:
        rows = count * prod(after)
        return _plain(name, (rows, 1), (1, 1), (channels * prod(window), outputs), groups)
    (stride,) = moving
    tall, wide = (*after, 1)[:2]
    window_tall, window_wide = (*window, 1)[:2]
    seen = ((count * tall - 1) * stride + window_tall, (wide - 1) * stride + window_wide)
    return _plain(name, seen, (window_tall, window_wide), (channels, outputs), groups, stride)


def transpose_convolution(name: str, images: Shape, filters: Shape, *, groups: int = 1) -> Layer:
    """Build a transposed convolution as a matrix product with a row per input pixel.

    The product has a column per output channel and filter tap.

    Args:
        name: name of the layer.
        images: shape of the inputs, (n, channels, ...).
        filters: shape of the weights, (channels, filters of a group, ...).
        groups: number of groups.
    """
    count, channels, *before = images
    _, outputs, *window = filters
    columns = outputs * groups * prod(window)
    return _plain(name, (count * prod(before), 1), (1, 1), (channels, columns), groups)


def multiply_shapes(
    name: str, left: Shape, right: Shape, *, left_weighted: bool, right_weighted: bool
) -> Layer:
    """Build the matrix product of operands with these shapes.

    The product has a copy per matrix on the right-hand side; all left-hand matrices that are
    multiplied by the same right-hand matrix are stacked as rows. If only the left-hand side is a
    parameter, both sides are transposed and swapped.

    Args:
        name: name of the layer.
        left: shape of the left operand, (..., rows, inputs).
        right: shape of the right operand, (..., inputs, outputs).
        left_weighted: whether the left operand consists of parameters.
        right_weighted: whether the right operand does.
    """
    if left_weighted and not right_weighted:
        left, right = (*right[:-2], right[-1], right[-2]), (*left[:-2], left[-1], left[-2])
    places = max(len(left), len(right)) - 2
    pairs = zip(_leading(left, places), _leading(right, places), strict=True)
    copies = prod(right[:-2])
    rows = prod(max(pair) for pair in pairs) // copies * left[-2]
    weighted = left_weighted or right_weighted
    return product(name, rows, left[-1], right[-1], copies=copies, weighted=weighted)


def _leading(shape: Shape, places: int) -> Shape:
    """Return a shape's axes before the last two, padded with leading 1s to ``places`` axes."""
    lead = shape[:-2]
    return (*(1,) * (places - len(lead)), *lead)


def _plain(
    name: str,
    image: tuple[int, int],
    window: tuple[int, int],
    ends: tuple[int, int],
    groups: int,
    stride: int = 1,
) -> Layer:
    return Layer(
        name=name,
        height=image[0],
        width=image[1],
        filter_height=window[0],
        filter_width=window[1],
        channels=ends[0],
        filters=ends[1],
        stride=stride,
        groups=groups,
        pruned_inputs=False,
        pruned_outputs=False,
    )
