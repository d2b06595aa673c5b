"""Cycles of grouped convolutions on a row-stationary array, by cause of underutilization."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.grouped.grouped_convolution import ConvolutionShapes


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStationaryArray:
    """Sizes of n row-stationary arrays of processing elements, (n,).

    Each processing element does one multiply-accumulate per cycle.
    """

    rows: Floats  # (n,)
    cols: Floats  # (n,)
    feed: Floats  # (n,), words per cycle at the edge of the array

    @property
    def elements(self) -> Floats:
        """Number of processing elements of each array, (n,)."""
        return self.rows * self.cols


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """Cycles of each layer for a batch of images, split by cause; every field is (l, n)."""

    macs: Floats
    """Cycles if all elements were always multiplying."""
    mapping: Floats
    """Additional cycles because some elements have no work."""
    feed: Floats
    """Additional cycles because the feed is too slow."""

    @property
    def all(self) -> Floats:
        """Total cycles of each layer, (l, n)."""
        return self.macs + self.mapping + self.feed

    @property
    def utilization(self) -> Floats:
        """Mean fraction of the processing elements that multiply, over a layer's cycles, (l, n)."""
        return self.macs / self.all


def cycles(shapes: ConvolutionShapes, array: RowStationaryArray, images: Floats) -> Cycles:
    """Compute the cycles of l layers on n arrays for a batch of ``images`` (n,).

    A pair of a filter and a channel occupies as many rows as its window has and as many columns as
    its output is wide. As many pairs as fit are placed next to each other; an output wider than
    the array is folded. A layer takes at least the time to move each of its input, output and
    weight words through the feed once.

    Source:
        Chen, Emer, Sze: Eyeriss, ISCA 2016, section V (sets of processing elements, folding);
        the bound by the feed is the roofline of Williams et al., 2009, at the edge of the array.
    """
    work = shapes.macs * images
    ideal = work / array.elements
    mapped = ideal / spatial_share(shapes, array)
    words = (shapes.input_words + shapes.output_words) * images + shapes.weights
    fed = np.maximum(mapped, words / array.feed)
    return Cycles(macs=ideal, mapping=mapped - ideal, feed=fed - mapped)


def spatial_share(shapes: ConvolutionShapes, array: RowStationaryArray) -> Floats:
    """Return the fraction of processing elements that a layer's mapping occupies, (l, n)."""
    across = np.floor(array.cols / shapes.output_width)
    folds = np.ceil(shapes.output_width / array.cols)
    beside = np.floor(array.rows / shapes.window_height) * np.maximum(across, 1.0)
    used = np.minimum(shapes.pairs, beside) * shapes.window_height * shapes.output_width / folds
    return np.asarray(used / array.elements)
