"""Layer tables of residual networks on square images, with padded convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dse_evaluators.workloads.layer_table import LayerTable
from dse_evaluators.workloads.layers import Layer, convolution, dense

WIDENED = 4
"""Ratio of the filters of a bottleneck's last convolution to those of its middle one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """Residual network: number and kind of the blocks of each stage; filters double per stage.

    A block has two 3 x 3 convolutions, or is a ``bottleneck`` of 1 x 1, 3 x 3 and 1 x 1. In a
    bottleneck the first convolution is strided if ``strides_first``, else the middle one. The first
    block of a stage has a 1 x 1 convolution as its shortcut if the block changes the shape or
    ``always_projects`` is set.
    """

    blocks: Sequence[int]
    bottleneck: bool
    filters: int = 64
    side: int = 224
    classes: int = 1000
    strides_first: bool = False
    always_projects: bool = False


def residual(network: Residual) -> LayerTable:
    """Return a network's layer table: 7 x 7 convolution, pooling, stages and a dense layer.

    Source:
        He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2016, table 1.
    """
    side = _halve(network.side)
    layers = [convolution("conv1", side, 7, 3, network.filters, stride=2)]
    side, channels = _halve(side), network.filters
    for stage, blocks in enumerate(network.blocks):
        for block in range(blocks):
            sides = (side, _halve(side) if block == 0 and stage else side)
            shape = (channels, network.filters * 2**stage)
            name = f"stage{stage + 2}-{block}"
            layers += _block(network, name, sides, shape)
            if block == 0 and (network.always_projects or layers[-1].filters != channels):
                layers.append(_shortcut(name, sides, (channels, layers[-1].filters)))
            side, channels = sides[1], layers[-1].filters
    return add_norms((*layers, dense("fc", channels, network.classes, last=True)))


def add_norms(layers: tuple[Layer, ...]) -> LayerTable:
    """Return a layer table with a norm after each layer but the last, which has biases.

    A norm has a gain and a bias per filter.
    """
    *convolutions, last = layers
    norms = 2 * sum(layer.filters for layer in convolutions)
    return LayerTable(layers=layers, others=norms + last.filters)


def _block(
    network: Residual, name: str, sides: tuple[int, int], shape: tuple[int, int]
) -> list[Layer]:
    """Build the convolutions of a block without its shortcut.

    ``sides`` are the sides of the image before and after the block; ``shape`` is (channels,
    filters).
    """
    if network.bottleneck:
        return _bottleneck(name, sides, shape, first=network.strides_first)
    channels, filters = shape
    stride = _stride(sides)
    return [
        convolution(f"{name}-first", sides[1], 3, channels, filters, stride=stride),
        convolution(f"{name}-second", sides[1], 3, filters, filters),
    ]


def _shortcut(name: str, sides: tuple[int, int], shape: tuple[int, int]) -> Layer:
    return convolution(f"{name}-shortcut", sides[1], 1, *shape, stride=_stride(sides))


def _bottleneck(
    name: str, sides: tuple[int, int], shape: tuple[int, int], *, first: bool
) -> list[Layer]:
    channels, filters = shape
    before, after = sides
    stride = _stride(sides)
    middle = after if first else before
    strides = (stride, 1) if first else (1, stride)
    return [
        convolution(f"{name}-reduce", middle, 1, channels, filters, stride=strides[0]),
        convolution(f"{name}-3x3", after, 3, filters, filters, stride=strides[1]),
        convolution(f"{name}-expand", after, 1, filters, WIDENED * filters),
    ]


def _stride(sides: tuple[int, int]) -> int:
    return 1 if sides[0] == sides[1] else 2


def _halve(side: int) -> int:
    return -(-side // 2)
