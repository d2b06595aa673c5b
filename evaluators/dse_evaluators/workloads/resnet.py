"""Layer tables of ResNet-18 and ResNet-50 for 224 x 224 images.

Source:
    He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2016, table 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from dse_evaluators.workloads.layer_table import LayerTable
from dse_evaluators.workloads.layers import Layer, dense
from dse_evaluators.workloads.residual import WIDENED, Residual, add_norms, residual

_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Filters and number of blocks of each stage of ResNet-50."""


def _unpadded50() -> LayerTable:
    """Build ResNet-50 as in SCALE-Sim's topology file: 54 layers, images without padding."""
    layers = [_conv("conv1", 224, 7, 3, 64, stride=2)]
    side, channels = 56, 64
    for stage, (inner, blocks) in enumerate(_STAGES, start=2):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 2 else 1
            layers += _bottleneck(f"stage{stage}-{block}", side, channels, inner, stride=stride)
            side, channels = side // stride, WIDENED * inner
    return add_norms((*layers, dense("fc", channels, 1000, last=True)))


def _bottleneck(name: str, side: int, channels: int, inner: int, *, stride: int) -> list[Layer]:
    """Build 1 x 1, 3 x 3 and 1 x 1 convolutions, and a 1 x 1 shortcut if the shape changes."""
    after, outer = side // stride, WIDENED * inner
    layers = [
        _conv(f"{name}-reduce", side, 1, channels, inner, stride=stride),
        _conv(f"{name}-3x3", after, 3, inner, inner),
        _conv(f"{name}-expand", after, 1, inner, outer),
    ]
    if channels != outer:
        layers.append(_conv(f"{name}-shortcut", side, 1, channels, outer, stride=stride))
    return layers


def _conv(
    name: str, side: int, window: int, channels: int, filters: int, *, stride: int = 1
) -> Layer:
    """Build a square convolution on an input image of ``side`` x ``side`` pixels."""
    return Layer(
        name=name,
        height=side,
        width=side,
        filter_height=window,
        filter_width=window,
        channels=channels,
        filters=filters,
        stride=stride,
        pruned_inputs=channels != 3,
    )


_BLOCKS50 = tuple(blocks for _, blocks in _STAGES)

RESNETS: Mapping[str, LayerTable] = {
    "resnet18": residual(Residual(blocks=(2, 2, 2, 2), bottleneck=False)),
    "resnet50": _unpadded50(),
    # with padding: v1 as in the paper, v1.5 as in most libraries
    "resnet50-v1": residual(Residual(blocks=_BLOCKS50, bottleneck=True, strides_first=True)),
    "resnet50-v1.5": residual(Residual(blocks=_BLOCKS50, bottleneck=True)),
}
