"""Distinct layer shapes with their counts, as sent to external models' workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dse_evaluators.workloads.layers import Layer

Shape = dict[str, int]
"""Sizes of a layer by name, and ``times``, the number of times that it runs."""


def shapes(layers: Sequence[Layer]) -> list[Shape]:
    """Return each distinct layer shape of a model with its number of runs, in model order.

    The external models support neither groups nor copies (such as attention heads), so a grouped
    convolution counts as one small convolution per group, a copied layer as one layer per copy.
    """
    found: Counter[Layer] = Counter()
    for layer in layers:
        found[_plain(layer)] += layer.groups * layer.copies
    return [_shape(layer, times) for layer, times in found.items()]


def _plain(layer: Layer) -> Layer:
    return replace(
        layer,
        name="",
        channels=layer.channels // layer.groups,
        filters=layer.filters // layer.groups,
        groups=1,
        copies=1,
        weighted=True,
        pruned_inputs=True,
        pruned_outputs=True,
    )


def _shape(layer: Layer, times: int) -> Shape:
    return {
        "height": layer.height,
        "width": layer.width,
        "filter_height": layer.filter_height,
        "filter_width": layer.filter_width,
        "channels": layer.channels,
        "filters": layer.filters,
        "stride": layer.stride,
        "times": times,
    }
