"""Workloads as lists of layers with shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Prunes = Literal["neither", "inputs", "outputs", "both"]
"""The sides on which structured pruning narrows a product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A convolution, or a matrix product as one: ``filters`` x (height x width x channels).

    ``height`` and ``width`` are of the input as the array sees it, padding included. A fully
    connected layer on a batch of b is the 1 x 1 convolution of a b x 1 image.
    ``pruned_inputs`` and ``pruned_outputs`` say whether structured pruning narrows the layer there.
    With ``groups`` each filter sees its share of the channels; one group for each channel is a
    depthwise convolution. ``copies`` such products run side by side, as the heads of attention do;
    where their right-hand side is no parameter but another activation, it is not ``weighted``. More
    inputs at once are more pixels against the same filters; unweighted, they are more copies.
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
        """Number of weights of one filter: the elements of a window."""
        return self.filter_height * self.filter_width * self.channels // self.groups

    @property
    def macs(self) -> int:
        """Multiply-accumulates for one input."""
        outputs = self.output_height * self.output_width * self.filters
        return outputs * self.weights_per_filter * self.copies

    @property
    def weights(self) -> int:
        """Number of weights of the layer, without biases."""
        return self.weights_per_filter * self.filters * self.copies if self.weighted else 0


def dense(
    name: str, inputs: int, outputs: int, *, first: bool = False, last: bool = False
) -> Layer:
    """A fully connected layer on one input vector.

    The first one of a network keeps all its inputs, the last one all its outputs.
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


def product(  # a product is these seven facts
    name: str,
    rows: int,
    inputs: int,
    outputs: int,
    *,
    copies: int = 1,
    weighted: bool = True,
    prunes: Prunes = "neither",
) -> Layer:
    """Build a product of rows x inputs by inputs x outputs; pruning narrows it at ``prunes``."""
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
    """Build products one after another, of these widths; pruning keeps both outer widths."""
    last = len(widths) - 2
    return tuple(
        product(f"{name}{place}", rows, inputs, outputs, prunes=_within(place, last))
        for place, (inputs, outputs) in enumerate(pairwise(widths))
    )


def _within(place: int, last: int) -> Prunes:
    if place == last:
        return "inputs" if last else "neither"
    return "both" if place else "outputs"


def convolution(  # a convolution is these seven facts
    name: str,
    side: int,
    window: int,
    channels: int,
    filters: int,
    *,
    stride: int = 1,
    groups: int = 1,
) -> Layer:
    """A square convolution by the ``side`` of its output, however it was padded.

    Rows and columns of the padded image that no window touches are left away.
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
    """A 3 x 3 convolution with padding 1 on a square image of ``side``."""
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


# The network that `compression.post-training` trains on scikit-learn's digits (8 x 8 pixels):
# conv - conv - pool 2 - conv - pool 2 - dense - dense.
DIGITS_CNN: tuple[Layer, ...] = (
    _conv3("conv1", 8, 1, 32, first=True),
    _conv3("conv2", 8, 32, 64),
    _conv3("conv3", 4, 64, 64),
    dense("fc1", 64 * 2 * 2, 128),
    dense("fc2", 128, 10, last=True),
)

# The network that reads 28 x 28 pixels of MNIST, with 33,194 weights and biases:
# conv - pool 2 - conv - pool 2 - conv - pool 2 - dense - dense.
MNIST_CNN: tuple[Layer, ...] = (
    _conv3("conv1", 28, 1, 16, first=True),
    _conv3("conv2", 14, 16, 32),
    _conv3("conv3", 7, 32, 32),
    dense("fc1", 32 * 3 * 3, 64),
    dense("fc2", 64, 10, last=True),
)

# The dense layers of a recommender on MovieLens-100k: 22 features become a vector of 32, and that
# with the 15 products of six such vectors (five are looked up in tables) becomes one number.
MOVIELENS_MLP: tuple[Layer, ...] = (
    dense("bottom1", 22, 64, first=True),
    dense("bottom2", 64, 32, last=True),
    dense("top1", 32 + 15, 128, first=True),
    dense("top2", 128, 64),
    dense("top3", 64, 1, last=True),
)
