"""Layer tables of VGG-16 and AlexNet.

Source:
    Simonyan, Zisserman: Very Deep Convolutional Networks, 2015, table 1, D. Krizhevsky, Sutskever,
    Hinton: ImageNet Classification with Deep Convolutional Neural Networks, 2012, section 3.5: the
    version for two GPUs, so that three of its convolutions have two groups.
"""

from __future__ import annotations

from dse_evaluators.workloads.layer_table import LayerTable, add_biases
from dse_evaluators.workloads.layers import Layer, convolution, dense

_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Filters and number of convolutions of each stage; a pooling follows each stage."""

_NEURONS = 4096
_CLASSES = 1000


def _vgg16() -> LayerTable:
    layers, side, channels = [], 224, 3
    for stage, (filters, count) in enumerate(_STAGES, start=1):
        for place in range(1, count + 1):
            layers.append(convolution(f"conv{stage}-{place}", side, 3, channels, filters))
            channels = filters
        side //= 2
    return _add_classifier(layers, side * side * channels)


def _alexnet() -> LayerTable:
    layers = [
        convolution("conv1", 55, 11, 3, 96, stride=4),
        convolution("conv2", 27, 5, 96, 256, groups=2),
        convolution("conv3", 13, 3, 256, 384),
        convolution("conv4", 13, 3, 384, 384, groups=2),
        convolution("conv5", 13, 3, 384, 256, groups=2),
    ]
    return _add_classifier(layers, 6 * 6 * 256)


def _add_classifier(layers: list[Layer], inputs: int) -> LayerTable:
    """Return a layer table of the layers and three dense layers, with a bias per filter."""
    return add_biases(
        *layers,
        dense("fc1", inputs, _NEURONS),
        dense("fc2", _NEURONS, _NEURONS),
        dense("fc3", _NEURONS, _CLASSES, last=True),
    )


VGG16 = _vgg16()
ALEXNET = _alexnet()
