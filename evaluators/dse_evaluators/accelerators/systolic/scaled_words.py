"""Scales of number formats on the array: the bits that they add to each number of a layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse.errors import EvaluationError
from dse_evaluators.formats.elements import scale_bits
from dse_evaluators.formats.words import FORMATS
from dse_evaluators.workloads.layers import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleBits:
    """Bits of scales and zero points for each weight and for each input of l layers, (l, 1).

    If each layer has its own format, ``weight`` and ``element`` (the bits of a weight without its
    scale) are (l, c) for c combinations of formats.
    """

    weight: Floats
    input: Floats
    element: Floats | None = None

    def of_designs(self, combination: Floats) -> tuple[Floats, Floats | None]:
        """Return the bits of scales and of the element for each weight of n designs.

        Args:
            combination: index of each design's combination, (n,) or (1,).
        """
        if self.element is None:
            return self.weight, None
        place = combination.astype(np.intp)
        return self.weight[:, place], self.element[:, place]

    @staticmethod
    def of(layers: Sequence[Layer], weight_format: str, activation_format: str) -> ScaleBits | None:
        """Return the scale bits of layers in two formats; ``None`` if neither has scales.

        Scales of weights run along all inputs of an output. Those of activations run along the
        inputs of each row of a matrix product, or over all values of an image.

        Raises:
            EvaluationError: the blocks of a format do not fit a layer.
        """
        if weight_format in FORMATS and activation_format in FORMATS:
            return None
        weights = [weight_scale_bits(one, weight_format) for one in layers]
        inputs = [_of_layer(one, activation_format, _input_shape(one)) for one in layers]
        return ScaleBits(weight=np.array(weights)[:, None], input=np.array(inputs)[:, None])


def weight_scale_bits(layer: Layer, text: str) -> float:
    """Return the bits of scales and zero points that each weight of a layer needs.

    Args:
        layer: the layer.
        text: the number format of its weights.

    Raises:
        EvaluationError: the blocks of the format do not fit the layer.
    """
    return _of_layer(layer, text, _weight_shape(layer)) if layer.weighted else 0.0


def _of_layer(layer: Layer, text: str, shape: tuple[int, int]) -> float:
    try:
        return scale_bits(text, *shape)
    except EvaluationError as error:
        kind = f"a layer of {layer.channels} channels and {layer.filters} filters"
        reason = f"the blocks of {text} do not fit {shape[1]} numbers of {kind}"
        raise EvaluationError(f"{reason}: {error.hint or error.problem}") from error


def _weight_shape(layer: Layer) -> tuple[int, int]:
    """Return the outputs of a layer and the weights of each."""
    return layer.filters * layer.copies, layer.weights_per_filter


def _input_shape(layer: Layer) -> tuple[int, int]:
    """Return the rows of a layer's inputs and the numbers of each that share scales."""
    is_image = layer.width > 1 or layer.filter_height * layer.filter_width > 1
    if is_image:
        return layer.copies, layer.height * layer.width * layer.channels
    return layer.height * layer.copies, layer.channels
