"""Utilization of a row-stationary array by grouped convolutions, and the causes of stalls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.grouped.grouped_convolution import ConvolutionShapes


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStationaryArray:
    """n arrays of processing elements, each of which multiplies once a cycle."""

    rows: Floats  # (n,)
    cols: Floats  # (n,)
    feed: Floats  # (n,), words that reach the array in a cycle

    @property
    def elements(self) -> Floats:
        """Number of processing elements."""
        return self.rows * self.cols


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """Cycles of each layer by cause; every field is (l, n), for a complete batch of images."""

    macs: Floats
    """All elements multiplying."""
    mapping: Floats
    """More, since some elements have nothing to do."""
    feed: Floats
    """More, since words come too late."""

    @property
    def all(self) -> Floats:
        """The cycles of each layer."""
        return self.macs + self.mapping + self.feed

    @property
    def utilization(self) -> Floats:
        """The share of the elements that multiply, on average."""
        return self.macs / self.all


def cycles(shapes: ConvolutionShapes, array: RowStationaryArray, images: Floats) -> Cycles:
    """The cycles of l layers on n arrays for so many images at once.

    A pair of a filter and a channel is worked on by as many rows as its window has and as many
    columns as its output. Pairs lie beside one another while there are any; an output that is
    wider than the array is folded. A layer takes no less than its words take to come in and go
    out, each once.

    Source:
        Chen, Emer, Sze: Eyeriss, ISCA 2016, section V (sets of processing elements, folding);
        the limit by words is the roofline of Williams et al., 2009, at the edge of the array.
    """
    work = shapes.macs * images
    ideal = work / array.elements
    mapped = ideal / spatial_share(shapes, array)
    words = (shapes.input_words + shapes.output_words) * images + shapes.weights
    fed = np.maximum(mapped, words / array.feed)
    return Cycles(macs=ideal, mapping=mapped - ideal, feed=fed - mapped)


def spatial_share(shapes: ConvolutionShapes, array: RowStationaryArray) -> Floats:
    """The share of the elements that has a pair to work on, (l, n)."""
    across = np.floor(array.cols / shapes.output_width)
    folds = np.ceil(shapes.output_width / array.cols)
    beside = np.floor(array.rows / shapes.window_height) * np.maximum(across, 1.0)
    used = np.minimum(shapes.pairs, beside) * shapes.window_height * shapes.output_width / folds
    return np.asarray(used / array.elements)
