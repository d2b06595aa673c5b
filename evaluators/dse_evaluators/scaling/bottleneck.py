"""Multiply-accumulates and weights of bottleneck ResNets of any width.

The first and the last layer are counted apart from the inner layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

BLOCKS: Mapping[int, tuple[int, ...]] = {
    26: (2, 2, 2, 2),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
"""Number of blocks in each of the four stages, by the number of layers of the network."""

_IMAGE = 224
_CLASSES = 1000


@dataclass(frozen=True, slots=True)
class ImageWork:
    """Multiply-accumulates per image, and number of weights, of a group of layers."""

    macs: int = 0
    weights: int = 0

    def __add__(self, other: ImageWork) -> ImageWork:
        return ImageWork(self.macs + other.macs, self.weights + other.weights)


@cache
def work(depth: int, width: float) -> tuple[ImageWork, ImageWork]:
    """Return MACs and weights of a ResNet's inner layers, and of first and last layer together.

    Source:
        He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2016, table 1; the
        stride of a stage is in its first 3 x 3 convolution, as in version 1.5 of ResNet-50.
    """
    stem = round(64 * width)
    first = _conv(_IMAGE // 2, 7, 3, stem)
    inner, side, channels = ImageWork(), _IMAGE // 4, stem
    for stage, blocks in enumerate(BLOCKS[depth]):
        filters = round(64 * 2**stage * width)
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            inner += _block(side, channels, filters, stride)
            side, channels = side // stride, 4 * filters
    last = ImageWork(channels * _CLASSES, channels * _CLASSES)
    return inner, first + last


def _block(side: int, channels: int, filters: int, stride: int) -> ImageWork:
    after = side // stride
    whole = (
        _conv(side, 1, channels, filters)
        + _conv(after, 3, filters, filters)
        + _conv(after, 1, filters, 4 * filters)
    )
    changes = channels != 4 * filters or stride > 1
    return whole + _conv(after, 1, channels, 4 * filters) if changes else whole


def _conv(side: int, window: int, channels: int, filters: int) -> ImageWork:
    """Return MACs and weights of a convolution with ``side`` x ``side`` outputs per filter."""
    weights = window * window * channels * filters
    return ImageWork(side * side * weights, weights)
