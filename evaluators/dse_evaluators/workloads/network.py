"""A table of layers as a network that torch runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.layers import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkStage:
    """A layer with what the table implies around it.

    ``pool`` is the side of the max-pooling after it; ``rectified`` is false for the last layer.
    """

    name: str
    dense: bool
    padding: int
    stride: int
    pool: int
    rectified: bool


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of one layer: (filters, channels, height, width), or (outputs, inputs)."""

    weight: Tensor
    bias: Tensor  # (filters,)


Affines = tuple[LayerWeights, ...]


def stages(layers: Sequence[Layer]) -> tuple[NetworkStage, ...]:
    """The layers as stages, with the padding and pooling that the table implies.

    Padding keeps an image's size; where the next input is smaller than the output, there is
    pooling between.
    """
    found = []
    for layer, after in zip(layers, [*layers[1:], None], strict=True):
        found.append(
            NetworkStage(
                name=layer.name,
                dense=is_dense(layer),
                padding=(layer.filter_height - 1) // 2,
                stride=layer.stride,
                pool=1 if after is None else _pool(layer, after),
                rectified=after is not None,
            )
        )
    return tuple(found)


def is_dense(layer: Layer) -> bool:
    """True for a fully connected layer, which the table has as a 1 x 1 image."""
    return layer.height == layer.width == 1


def shape(layer: Layer) -> tuple[int, ...]:
    """The shape of the layer's weights."""
    if is_dense(layer):
        return layer.filters, layer.channels
    return layer.filters, layer.channels, layer.filter_height, layer.filter_width


def apply_layer(
    stage: NetworkStage,
    affine: LayerWeights,
    inputs: Tensor,  # (n, channels, height, width), or (n, inputs)
) -> Tensor:
    """Return the layer's outputs before rectifying and pooling."""
    if stage.dense:
        return functional.linear(inputs.flatten(1), affine.weight, affine.bias)
    return functional.conv2d(
        inputs, affine.weight, affine.bias, stride=stage.stride, padding=stage.padding
    )


def passed_on(stage: NetworkStage, outputs: Tensor) -> Tensor:
    """Return the outputs as the next layer receives them."""
    if stage.rectified:
        outputs = torch.relu(outputs)
    return functional.max_pool2d(outputs, stage.pool) if stage.pool > 1 else outputs


def forward(
    network: Sequence[NetworkStage],
    affines: Sequence[LayerWeights],
    images: Tensor,  # (n, channels, height, width)
) -> Tensor:
    """The logits, (n, classes)."""
    signal = images
    for stage, affine in zip(network, affines, strict=True):
        signal = passed_on(stage, apply_layer(stage, affine, signal))
    return signal


def _pool(layer: Layer, after: Layer) -> int:
    """The pooling after which ``layer``'s output is ``after``'s input."""
    if is_dense(layer):
        return 1
    if is_dense(after):
        left = round((after.channels // layer.filters) ** 0.5)
    else:
        left = after.height - (after.filter_height - 1)
    return layer.output_height // left
