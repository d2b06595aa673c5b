"""Torch network that is built from a list of layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.layers import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkStage:
    """Layer of a PyTorch network, with its padding, pooling and ReLU.

    ``pool`` is the window side of the max-pooling after the layer; 1 means no pooling.
    ``rectified`` is false for the last layer, which has no ReLU.
    """

    name: str
    dense: bool
    padding: int
    stride: int
    pool: int
    rectified: bool


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Weight and bias of one layer; ``weight`` has the shape that :func:`shape` returns."""

    weight: Tensor
    bias: Tensor  # (filters,)


Affines = tuple[LayerWeights, ...]


def stages(layers: Sequence[Layer]) -> tuple[NetworkStage, ...]:
    """Return the layers of a layer table as stages, with padding, pooling and ReLU.

    Padding preserves an image's size. If the next layer's input is smaller than this layer's
    output, there is max-pooling in between.
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
    """Return whether a layer is fully connected: in a layer table, its image is 1 x 1."""
    return layer.height == layer.width == 1


def shape(layer: Layer) -> tuple[int, ...]:
    """Return the shape of the weight of a layer.

    It is (outputs, inputs) for a dense layer, else (filters, channels, height, width).
    """
    if is_dense(layer):
        return layer.filters, layer.channels
    return layer.filters, layer.channels, layer.filter_height, layer.filter_width


def apply_layer(
    stage: NetworkStage,
    affine: LayerWeights,
    inputs: Tensor,  # (n, channels, height, width), or (n, inputs)
) -> Tensor:
    """Return a layer's outputs for given inputs, before its ReLU and pooling."""
    if stage.dense:
        return functional.linear(inputs.flatten(1), affine.weight, affine.bias)
    return functional.conv2d(
        inputs, affine.weight, affine.bias, stride=stage.stride, padding=stage.padding
    )


def passed_on(stage: NetworkStage, outputs: Tensor) -> Tensor:
    """Return a layer's outputs after its ReLU and pooling, the inputs of the next layer."""
    if stage.rectified:
        outputs = torch.relu(outputs)
    return functional.max_pool2d(outputs, stage.pool) if stage.pool > 1 else outputs


def forward(
    network: Sequence[NetworkStage],
    affines: Sequence[LayerWeights],
    images: Tensor,  # (n, channels, height, width)
) -> Tensor:
    """Return the network's logits for the images, (n, classes)."""
    signal = images
    for stage, affine in zip(network, affines, strict=True):
        signal = passed_on(stage, apply_layer(stage, affine, signal))
    return signal


def _pool(layer: Layer, after: Layer) -> int:
    """Return the side of the pooling window between ``layer`` and the next layer, ``after``.

    It reduces the output of ``layer`` to the size of the input of ``after``.
    """
    if is_dense(layer):
        return 1
    if is_dense(after):
        left = round((after.channels // layer.filters) ** 0.5)
    else:
        left = after.height - (after.filter_height - 1)
    return layer.output_height // left
