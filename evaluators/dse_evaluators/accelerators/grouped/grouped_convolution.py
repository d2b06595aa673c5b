"""Shapes of a network whose depthwise layers are regrouped, at any group size and width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.workloads.layers import Layer

GROUPINGS = ("size", "count")
"""Meaning of ``group``: the number of channels per group, or the number of groups per layer."""

_HALVINGS = 60
_WIDEST = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Replacement of depthwise convolutions by grouped ones in n designs.

    The resulting numbers of channels may be fractional.
    """

    group: Floats  # (n,), or (l, n), used only in regrouped layers; at least 1
    by_count: Mask  # (n,), whether group is a count of groups, see GROUPINGS
    width: Floats  # (n,), multiplier of all channels except the image's and the classes'

    def with_width(self, width: Floats) -> Grouping:
        """Return the same grouped convolutions with another width multiplier."""
        return Grouping(group=self.group, by_count=self.by_count, width=width)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionShapes:
    """Layer shapes of n networks with l layers each, for one image; every field is (l, n)."""

    window_height: Floats  # (l, 1)
    window: Floats  # (l, 1), positions in a window
    output_width: Floats  # (l, 1)
    outputs: Floats  # (l, 1), pixels of one output channel
    inputs: Floats  # (l, 1), pixels read of one input channel, without padding
    channels: Floats  # (l, n)
    filters: Floats  # (l, n)
    per_group: Floats  # (l, n), channels that one filter reads

    @property
    def pairs(self) -> Floats:
        """Number of (filter, input channel) pairs of each layer, each a 2-D convolution, (l, n)."""
        return self.filters * self.per_group

    @property
    def macs(self) -> Floats:
        """Multiply-accumulates of each layer for one image, (l, n)."""
        return self.weights * self.outputs

    @property
    def weights(self) -> Floats:
        """Number of weights of each layer, without biases, (l, n)."""
        return self.window * self.pairs

    @property
    def input_words(self) -> Floats:
        """Number of input activations of each layer for one image, (l, n)."""
        return self.channels * self.inputs

    @property
    def output_words(self) -> Floats:
        """Number of output activations of each layer for one image, (l, n)."""
        return self.filters * self.outputs


@dataclass(frozen=True, slots=True)
class GroupConvolutionNetwork:
    """Chain of layers whose depthwise convolutions are replaced by grouped ones.

    Source:
        Jha et al.: DRACO, 2020, section 3, and E2GC, 2020, section 3: group convolutions in the
        place of MobileNet's depthwise ones.
    """

    layers: Sequence[Layer]
    grouped: Mask = field(init=False)  # (l, 1)

    def __post_init__(self) -> None:
        depthwise = [1 < layer.groups == layer.channels for layer in self.layers]
        object.__setattr__(self, "grouped", np.array(depthwise)[:, None])

    @property
    def macs(self) -> float:
        """Multiply-accumulates of the original network, for one image."""
        return float(sum(layer.macs for layer in self.layers))

    def shapes(self, grouping: Grouping) -> ConvolutionShapes:
        """Compute the layer shapes of n networks, each regrouped as one design specifies."""
        channels = self._column("channels") * np.ones_like(grouping.width)
        filters = self._column("filters") * np.ones_like(grouping.width)
        channels[1:] *= grouping.width
        filters[:-1] *= grouping.width
        pixels = self._column("output_height") * self._column("output_width")
        window_height = self._column("filter_height")
        return ConvolutionShapes(
            window_height=window_height,
            window=window_height * self._column("filter_width"),
            output_width=self._column("output_width"),
            outputs=pixels,
            inputs=pixels * self._column("stride") ** 2,
            channels=channels,
            filters=filters,
            per_group=np.where(self.grouped, _per_group(channels, grouping), channels),
        )

    def same_macs_width(self, grouping: Grouping) -> Floats:
        """Solve for the width multipliers at which regrouped networks keep the original MACs, (n,).

        The solution is found by bisection, between 0 and ``_WIDEST``.
        """
        low = np.zeros_like(grouping.width)
        high = np.full_like(grouping.width, _WIDEST)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            many = sum_layers(self.shapes(grouping.with_width(middle)).macs) > self.macs
            low, high = np.where(many, low, middle), np.where(many, middle, high)
        return (low + high) / 2

    def _column(self, name: str) -> Floats:
        return np.array([float(getattr(layer, name)) for layer in self.layers])[:, None]


def sum_layers(layers: Floats) -> Floats:
    """Return the sum over layers (first axis), with rounding that is independent of n."""
    return np.asarray(np.cumsum(layers, axis=0)[-1])


def _per_group(channels: Floats, grouping: Grouping) -> Floats:
    """Return the channels per group, (l, n): at least 1, at most all channels of the layer."""
    by_count = np.maximum(channels / grouping.group, 1.0)
    return np.where(grouping.by_count, by_count, np.minimum(grouping.group, channels))
