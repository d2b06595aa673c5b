"""Shapes of layers, which are convolutions or matrix products, and lists of small networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Prunes = Literal["neither", "inputs", "outputs", "both"]
"""Sides on which structured pruning narrows a matrix product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Shape of a convolution, or of a matrix product that is written as a convolution.

    ``height`` and ``width`` are those of the input image, padding included. A fully connected layer
    on a batch of b is the 1 x 1 convolution of a b x 1 image. ``pruned_inputs`` and
    ``pruned_outputs`` state whether structured pruning reduces the number of input channels or of
    filters. With ``groups`` each filter reads only its group's channels; one group per channel is a
    depthwise convolution. There are ``copies`` independent products of this shape, such as the
    heads of attention. A product is ``weighted`` if its right-hand side is a parameter, not an
    activation. A larger batch means more pixels for the same filters; for an unweighted layer it
    means more copies.
    """

    name: str
    height: int
    width: int
    filter_height: int
    filter_width: int
    channels: int
    filters: int
    stride: int = 1
    groups: int = 1
    copies: int = 1
    weighted: bool = True
    pruned_inputs: bool = True
    pruned_outputs: bool = True

    @property
    def output_height(self) -> int:
        return -(-(self.height - self.filter_height + self.stride) // self.stride)

    @property
    def output_width(self) -> int:
        return -(-(self.width - self.filter_width + self.stride) // self.stride)

    @property
    def weights_per_filter(self) -> int:
        """Number of weights of one filter: the elements of its window."""
        return self.filter_height * self.filter_width * self.channels // self.groups

    @property
    def macs(self) -> int:
        """Number of multiply-accumulates of one run of the layer, for all its copies."""
        outputs = self.output_height * self.output_width * self.filters
        return outputs * self.weights_per_filter * self.copies

    @property
    def weights(self) -> int:
        """Number of weights of the layer, without biases."""
        return self.weights_per_filter * self.filters * self.copies if self.weighted else 0


def dense(
    name: str, inputs: int, outputs: int, *, first: bool = False, last: bool = False
) -> Layer:
    """Build a fully connected layer on one input vector.

    Structured pruning keeps all inputs of a network's ``first`` layer and all outputs of its
    ``last``.
    """
    return Layer(
        name=name,
        height=1,
        width=1,
        filter_height=1,
        filter_width=1,
        channels=inputs,
        filters=outputs,
        pruned_inputs=not first,
        pruned_outputs=not last,
    )


def product(
    name: str,
    rows: int,
    inputs: int,
    outputs: int,
    *,
    copies: int = 1,
    weighted: bool = True,
    prunes: Prunes = "neither",
) -> Layer:
    """Build a matrix product, (rows x inputs) by (inputs x outputs).

    ``prunes`` names the sides (inputs, outputs) that structured pruning may make narrower.
    """
    return Layer(
        name=name,
        height=rows,
        width=1,
        filter_height=1,
        filter_width=1,
        channels=inputs,
        filters=outputs,
        copies=copies,
        weighted=weighted,
        pruned_inputs=prunes in ("inputs", "both"),
        pruned_outputs=prunes in ("outputs", "both"),
    )


def stack(name: str, widths: Sequence[int], rows: int = 1) -> tuple[Layer, ...]:
    """Build a chain of fully connected layers with these widths, in order, as matrix products.

    Structured pruning may reduce all widths but the first and the last.
    """
    last = len(widths) - 2
    return tuple(
        product(f"{name}{place}", rows, inputs, outputs, prunes=_within(place, last))
        for place, (inputs, outputs) in enumerate(pairwise(widths))
    )


def _within(place: int, last: int) -> Prunes:
    if place == last:
        return "inputs" if last else "neither"
    return "both" if place else "outputs"


def convolution(
    name: str,
    side: int,
    window: int,
    channels: int,
    filters: int,
    *,
    stride: int = 1,
    groups: int = 1,
) -> Layer:
    """Build a square convolution from the ``side`` of its output, for any padding.

    The resulting input image includes the padding, but not rows and columns that no window covers.
    """
    seen = (side - 1) * stride + window
    return Layer(
        name=name,
        height=seen,
        width=seen,
        filter_height=window,
        filter_width=window,
        channels=channels,
        filters=filters,
        stride=stride,
        groups=groups,
        pruned_inputs=channels != 3,  # colours stay
    )


def _conv3(name: str, side: int, channels: int, filters: int, *, first: bool = False) -> Layer:
    """Build a 3 x 3 convolution with padding 1 on a square image of ``side``."""
    return Layer(
        name=name,
        height=side + 2,
        width=side + 2,
        filter_height=3,
        filter_width=3,
        channels=channels,
        filters=filters,
        pruned_inputs=not first,
    )


# CNN that `compression.post-training` trains on scikit-learn's digits (8 x 8 pixels):
# conv - conv - pool 2 - conv - pool 2 - dense - dense.
DIGITS_CNN: tuple[Layer, ...] = (
    _conv3("conv1", 8, 1, 32, first=True),
    _conv3("conv2", 8, 32, 64),
    _conv3("conv3", 4, 64, 64),
    dense("fc1", 64 * 2 * 2, 128),
    dense("fc2", 128, 10, last=True),
)

# CNN for the 28 x 28 pixels of MNIST, with 33,194 weights and biases:
# conv - pool 2 - conv - pool 2 - conv - pool 2 - dense - dense.
MNIST_CNN: tuple[Layer, ...] = (
    _conv3("conv1", 28, 1, 16, first=True),
    _conv3("conv2", 14, 16, 32),
    _conv3("conv3", 7, 32, 32),
    dense("fc1", 32 * 3 * 3, 64),
    dense("fc2", 64, 10, last=True),
)

# MLPs of a recommender on MovieLens-100k. The bottom one maps 22 features to a vector of 32; the
# top one maps it and the 15 dot products of six such vectors (five are embeddings) to a score.
MOVIELENS_MLP: tuple[Layer, ...] = (
    dense("bottom1", 22, 64, first=True),
    dense("bottom2", 64, 32, last=True),
    dense("top1", 32 + 15, 128, first=True),
    dense("top2", 128, 64),
    dense("top3", 64, 1, last=True),
)
