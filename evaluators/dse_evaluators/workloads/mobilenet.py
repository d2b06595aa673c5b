"""Layer tables of MobileNetV1 and MobileNetV2 for 224 x 224 images.

Source:
    Howard et al.: MobileNets, 2017, table 1. Sandler et al.: MobileNetV2, 2018, table 2.
"""

from __future__ import annotations

from dse_evaluators.workloads.layer_table import LayerTable
from dse_evaluators.workloads.layers import Layer, convolution, dense
from dse_evaluators.workloads.residual import add_norms

_V1: tuple[tuple[int, int], ...] = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *((512, 1),) * 5,
    (1024, 2),
    (1024, 1),
)
"""Filters of each depthwise separable pair, and its stride."""

_V2: tuple[tuple[int, int, int, int], ...] = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, filters, blocks and the first block's stride of each stage."""

_V2_LAST = 1280
_CLASSES = 1000


def _depthwise(name: str, side: int, channels: int, stride: int) -> Layer:
    return convolution(name, side, 3, channels, channels, stride=stride, groups=channels)


def _v1() -> LayerTable:
    side, channels = 112, 32
    layers = [convolution("conv1", side, 3, 3, channels, stride=2)]
    for pair, (filters, stride) in enumerate(_V1):
        side //= stride
        layers.append(_depthwise(f"pair{pair}-depthwise", side, channels, stride))
        layers.append(convolution(f"pair{pair}-pointwise", side, 1, channels, filters))
        channels = filters
    return _classifier(layers, channels)


def _build_block(
    name: str, side: int, ends: tuple[int, int], inner: int, stride: int
) -> list[Layer]:
    """Build an inverted residual block: expansion, depthwise and projection (narrow) layers.

    ``side`` is the side of the input image in pixels; ``ends`` are the block's input and output
    channels.
    """
    channels, filters = ends
    after = side // stride
    layers = [convolution(f"{name}-expand", side, 1, channels, inner)] if inner > channels else []
    return [
        *layers,
        _depthwise(f"{name}-depthwise", after, inner, stride),
        convolution(f"{name}-narrow", after, 1, inner, filters),
    ]


def _v2() -> LayerTable:
    side, channels = 112, 32
    layers = [convolution("conv1", side, 3, 3, channels, stride=2)]
    for stage, (expansion, filters, blocks, first) in enumerate(_V2):
        for block in range(blocks):
            stride = first if block == 0 else 1
            inner = expansion * channels
            name = f"stage{stage}-{block}"
            layers += _build_block(name, side, (channels, filters), inner, stride)
            side, channels = side // stride, filters
    layers.append(convolution("conv2", side, 1, channels, _V2_LAST))
    return _classifier(layers, _V2_LAST)


def _classifier(layers: list[Layer], channels: int) -> LayerTable:
    return add_norms((*layers, dense("fc", channels, _CLASSES, last=True)))


MOBILENET_V1 = _v1()
MOBILENET_V2 = _v2()
