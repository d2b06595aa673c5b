"""Layers of a workload as matrix products (GEMMs), with their sizes; equal layers are merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.systolic.scaled_words import ScaleBits
from dse_evaluators.workloads.layers import Layer

ONE = np.ones(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerProducts:
    """Layers as GEMMs of m x k (inputs) by k x n (filters); every field is (l, n) or (l, 1).

    For a convolution, ``m`` counts output pixels and ``k`` the elements of a window, so the m x k
    matrix repeats inputs where windows overlap; ``inputs`` counts each input once. All extents are
    of one GEMM. A layer consists of ``copies`` of it: one per group, per head and, where the
    right-hand operand is an activation, per input of the batch.
    """

    m: Floats
    k: Floats
    n: Floats
    window: Floats
    """Inputs in the window of one output: ``k``, or more where N:M sparsity reduces ``k``."""
    inputs: Floats
    window_rows: Floats
    """Inputs in the image rows spanned by one row of windows."""
    channels: Floats
    copies: Floats
    weighted: Mask  # (l, 1): whether the right-hand operand consists of weights
    overlapping: Mask  # (l, 1): whether windows share inputs

    @property
    def macs(self) -> Floats:
        """Multiply-accumulates of each layer, over all copies of its GEMM."""
        return self.m * self.k * self.n * self.copies


@dataclass(frozen=True, slots=True, kw_only=True)
class _Distinct:
    layer: Layer
    place: int  # of its weight in a list with one value for each; -1 if there is none
    pixels_per_channel: int
    """Inputs of a fully connected layer that come from one channel of the previous layer."""


class UniqueLayers:
    """Distinct layers of a workload, each with the number of times it occurs.

    ``scales`` are the bits of the number formats' scales, if any. ``places`` is the index of each
    layer's weight in a list; if it is given, layers with different weights are distinct.
    """

    scales: ScaleBits | None = None

    def __init__(self, layers: Sequence[Layer], places: Sequence[int] = ()) -> None:
        found = Counter(
            _Distinct(
                layer=replace(layer, name=""),
                place=place,
                pixels_per_channel=_pixels_per_channel(layer, before),
            )
            for layer, before, place in zip(
                layers, [None, *layers[:-1]], places or [-1] * len(layers), strict=True
            )
        )
        self.places = tuple(one.place for one in found)
        self.layers = tuple(one.layer for one in found)
        self.counts = tuple(found.values())
        self._counts = _column(self.counts)
        self._pixels_per_channel = _column([one.pixels_per_channel for one in found])
        self._out = _column([_outputs(layer) for layer in self.layers])
        self._taps = _column([layer.filter_height * layer.filter_width for layer in self.layers])
        self._touched = _column([_touched_pixels(layer) for layer in self.layers])
        self._span = _column([layer.filter_height * layer.width for layer in self.layers])
        self._channels = _column([layer.channels // layer.groups for layer in self.layers])
        self._filters = _column([layer.filters // layer.groups for layer in self.layers])
        self._groups = _column([layer.groups for layer in self.layers])
        self._copies = _column([layer.copies for layer in self.layers])
        self._weighted = _mask([layer.weighted for layer in self.layers])
        depthwise = _mask([layer.groups == layer.channels > 1 for layer in self.layers])
        pruned_in = _mask([layer.pruned_inputs for layer in self.layers])
        self._pruned_in = pruned_in & ~depthwise
        self._pruned_groups = pruned_in & depthwise
        self._pruned_out = _mask([layer.pruned_outputs for layer in self.layers]) & ~depthwise
        self._overlapping = _mask([_overlapping(layer) for layer in self.layers])
        self.weighted = bool(self._weighted.all())
        """Whether the right-hand operands of all layers are weights."""
        self.repeated = not self.weighted or bool((self._groups * self._copies > 1).any())
        """Whether some layer consists of more than one GEMM, or has an activation on the right."""

    def with_scales(self, weight_format: str, activation_format: str) -> UniqueLayers:
        """Return the layers with the bits of the scales that two number formats need.

        Raises:
            EvaluationError: the blocks of a format do not fit a layer.
        """
        return self.with_scale_bits(ScaleBits.of(self.layers, weight_format, activation_format))

    def with_scale_bits(self, scales: ScaleBits | None) -> UniqueLayers:
        """Return the layers with given bits of scales.

        Args:
            scales: the bits for each layer.
        """
        found = copy(self)
        found.scales = scales
        return found

    def products(self, filter_keep: Floats, batch: Floats) -> LayerProducts:
        """Return the GEMMs of each layer after structured pruning.

        Args:
            filter_keep: (n,) share of filters kept: ``round(keep * filters)`` in each layer, but
                at least one. The next layer loses the corresponding channels: a depthwise layer
                loses groups, any other grouped layer loses channels within each group.
            batch: (n,) batch size.
        """
        spread = self._pixels_per_channel
        channels = np.where(
            self._pruned_in,
            spread * _apply_keep(self._channels / spread, filter_keep),
            self._channels,
        )
        copies = self._groups * self._copies
        pixels = batch  # multiplied by the pixels of one input below
        if self.repeated:
            groups = np.where(
                self._pruned_groups, _apply_keep(self._groups, filter_keep), self._groups
            )
            copies = groups * self._copies * np.where(self._weighted, 1.0, batch)
            pixels = np.where(self._weighted, batch, 1.0)
        window = self._taps * channels
        return LayerProducts(
            m=self._out * pixels,
            k=window,
            window=window,
            n=np.where(self._pruned_out, _apply_keep(self._filters, filter_keep), self._filters),
            inputs=self._touched * channels * pixels,
            window_rows=self._span * channels,
            channels=channels,
            copies=copies,
            weighted=self._weighted,
            overlapping=self._overlapping,
        )

    def total(self, values: Floats, times: Floats = ONE) -> Floats:
        """Return the sum over all layers of (l, n) values, (n,).

        The values of each distinct layer are multiplied by the factor ``times`` (l, n) and by the
        number of times that the layer occurs in the network. Layers are added one at a time, so
        that a design's rounding does not depend on the number of designs.
        """
        each = self._counts * times
        total = np.zeros(np.broadcast_shapes(each.shape[1:], values.shape[1:]))
        for count, row in zip(each, values, strict=True):
            total += count * row
        return total


def _apply_keep(count: Floats, keep: Floats) -> Floats:
    return np.maximum(1.0, np.rint(keep * count))


def _column(values: Sequence[int]) -> Floats:
    return np.array(values, dtype=np.float64)[:, np.newaxis]


def _mask(values: Sequence[bool]) -> Mask:
    return np.array(values, dtype=bool)[:, np.newaxis]


def _outputs(layer: Layer) -> int:
    return layer.output_height * layer.output_width


def _pixels_per_channel(layer: Layer, before: Layer | None) -> int:
    single = layer.height == layer.width == layer.filter_height == layer.filter_width == 1
    if before is None or not single or layer.channels % before.filters:
        return 1
    return layer.channels // before.filters


def _touched_pixels(layer: Layer) -> int:
    """Return the number of input pixels that at least one convolution window covers.

    The last window may extend beyond the edge of the input.
    """
    return _count_side_pixels(
        layer.height, layer.filter_height, layer.stride, layer.output_height
    ) * _count_side_pixels(layer.width, layer.filter_width, layer.stride, layer.output_width)


def _count_side_pixels(side: int, window: int, stride: int, outputs: int) -> int:
    last = (outputs - 1) * stride
    return (outputs - 1) * min(window, stride) + max(0, min(window, side - last))


def _overlapping(layer: Layer) -> bool:
    down = layer.filter_height > layer.stride and layer.output_height > 1
    return down or (layer.filter_width > layer.stride and layer.output_width > 1)
