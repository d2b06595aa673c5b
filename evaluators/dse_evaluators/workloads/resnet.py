"""ResNet-18 and ResNet-50 for 224 x 224 images, layer by layer.

Source:
    He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2016, table 1. The sizes of
    ResNet-50 are those of SCALE-Sim's topology file: 54 layers, images without padding.
"""

from __future__ import annotations

from dse_evaluators.workloads.layers import Layer, dense


def _conv(  # a convolution is these seven facts
    name: str, side: int, window: int, channels: int, filters: int, *, stride: int = 1
) -> Layer:
    """A square convolution on a square image of ``side``, padding included."""
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


def _bottleneck(name: str, side: int, channels: int, inner: int, *, stride: int) -> list[Layer]:
    """1 x 1, 3 x 3, 1 x 1, and a shortcut of 1 x 1 where the block changes the shape."""
    after = side // stride
    layers = [
        _conv(f"{name}-reduce", side, 1, channels, inner, stride=stride),
        _conv(f"{name}-3x3", after, 3, inner, inner),
        _conv(f"{name}-expand", after, 1, inner, 4 * inner),
    ]
    if channels != 4 * inner:
        layers.append(_conv(f"{name}-shortcut", side, 1, channels, 4 * inner, stride=stride))
    return layers


def _basic(name: str, side: int, channels: int, filters: int, *, stride: int) -> list[Layer]:
    """3 x 3, 3 x 3 with padding 1, and a shortcut of 1 x 1 where the block changes the shape.

    The last row and column of a padded image that stride 2 never touches are left away.
    """
    after = side // stride
    seen = (after - 1) * stride + 3
    layers = [
        _conv(f"{name}-first", seen, 3, channels, filters, stride=stride),
        _conv(f"{name}-second", after + 2, 3, filters, filters),
    ]
    if channels != filters:
        seen = (after - 1) * stride + 1
        layers.append(_conv(f"{name}-shortcut", seen, 1, channels, filters, stride=stride))
    return layers


def _resnet50() -> tuple[Layer, ...]:
    layers = [_conv("conv1", 224, 7, 3, 64, stride=2)]
    side, channels = 56, 64
    for stage, (inner, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), start=2):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 2 else 1
            layers += _bottleneck(f"stage{stage}-{block}", side, channels, inner, stride=stride)
            side, channels = side // stride, 4 * inner
    return (*layers, dense("fc", 2048, 1000, last=True))


def _resnet18() -> tuple[Layer, ...]:
    layers = [_conv("conv1", 111 * 2 + 7, 7, 3, 64, stride=2)]
    side, channels = 56, 64
    for stage, filters in enumerate((64, 128, 256, 512), start=2):
        for block in range(2):
            stride = 2 if block == 0 and stage > 2 else 1
            layers += _basic(f"stage{stage}-{block}", side, channels, filters, stride=stride)
            side, channels = side // stride, filters
    return (*layers, dense("fc", 512, 1000, last=True))


RESNET50 = _resnet50()
RESNET18 = _resnet18()
