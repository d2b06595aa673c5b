"""Layer shapes as sent to workers, with equal ones listed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dse_evaluators.workloads.layers import Layer

Shape = dict[str, int]
"""The sizes of a layer by name, and ``times``: how often it is run."""


def shapes(layers: Sequence[Layer]) -> list[Shape]:
    """Each distinct shape, in the order in which it first comes.

    A grouped convolution is that many small ones, and copies are copies; a worker knows neither.
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
