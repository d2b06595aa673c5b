"""Layers that private inference encrypts: of a network, or by shape; and widths of their sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

import numpy as np

from dse.core.values import Floats, Value
from dse.errors import SpecError, nearest
from dse_evaluators.private_inference.packed_layer import LayerShape
from dse_evaluators.workloads.own.own_workload import TakesWorkload, known_layers

_SHAPE = "{height: 32, width: 32, channels: 16, filters: 32, window: 3}"
_REQUIRED = ("height", "width", "channels", "filters")
_OPTIONAL = ("window", "stride", "groups")
_MOST = 1 << 20


def layers_from(
    evaluator: TakesWorkload, workload: object, layer: str | None, shape: object
) -> tuple[LayerShape, ...]:
    """Return the layers that the options ``workload``, ``layer`` and ``shape`` name.

    Raises:
        SpecError: neither or both of workload and shape are given, there is no such layer or key,
            or a product of the network has no weights.
        PluginError: onnx is not installed.
    """
    if shape is not None:
        if workload is not None or layer is not None:
            hint = "keep shape alone, or workload and layer"
            raise SpecError("shape stands beside workload or layer", hint=hint, part=["shape"])
        return (_shape_from(shape),)
    if workload is None:
        hint = f"workload: digits-cnn, or shape: {_SHAPE}"
        raise SpecError("neither workload nor shape is given", hint=hint)
    layers = known_layers(evaluator, workload)
    if layer is not None and layers:
        found = [one for one in layers if one.name == layer]
        if not found:
            hint = nearest(layer, [one.name for one in layers])
            raise SpecError(f"the network has no layer {layer!r}", hint=hint, part=["layer"])
        layers = tuple(found[:1])
    for one in layers:
        if not one.weighted or one.copies != 1:
            problem = f"{one.name} is a product of two activations, or of several matrices"
            raise SpecError(problem, hint="layer: the name of a layer with weights", part=["layer"])
    return tuple(LayerShape.of(one) for one in layers)


def _shape_from(shape: object) -> LayerShape:
    if not isinstance(shape, Mapping):
        raise SpecError(f"shape cannot be {shape!r}", hint=_SHAPE, part=["shape"])
    sizes: dict[str, int] = {}
    for name, value in shape.items():
        if name not in (*_REQUIRED, *_OPTIONAL):
            hint = nearest(str(name), (*_REQUIRED, *_OPTIONAL))
            raise SpecError(f"shape has no key {name!r}", hint=hint, part=["shape"])
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
            raise SpecError(f"{name} is {value!r}", hint="a whole number from 1", part=["shape"])
        sizes[str(name)] = value
    lacking = next((name for name in _REQUIRED if name not in sizes), None)
    if lacking is not None:
        raise SpecError(f"shape has no {lacking}", hint=_SHAPE, part=["shape"])
    window, groups = sizes.pop("window", 1), sizes.get("groups", 1)
    if sizes["channels"] % groups or sizes["filters"] % groups:
        problem = f"{groups} groups do not divide channels and filters"
        raise SpecError(problem, hint="a common divisor of both", part=["shape"])
    return LayerShape(name="the layer", window_height=window, window_width=window, **sizes)


def needed_bits(
    shape: LayerShape, weight_bits: Floats | float, activation_bits: Floats | float
) -> Any:
    """Return the bits of a plaintext modulus that holds all sums of a layer, sign included."""
    weights = np.exp2(np.subtract(weight_bits, 1)) - 1
    activations = np.exp2(np.subtract(activation_bits, 1)) - 1
    return np.log2(2.0 * shape.terms * weights * activations + 1.0)


def check_operands(layers: Sequence[LayerShape], values: Mapping[str, Sequence[Value]]) -> None:
    """Raise SpecError if no plaintext modulus of a space is wide enough for a layer's sums.

    Raises:
        SpecError: the widest plaintext modulus is too narrow for the narrowest operands.
    """
    if not values.get("plain_bits") or not layers:
        return
    widest = max(float(value) for value in values["plain_bits"])
    weights = min((float(value) for value in values.get("weight_bits", ())), default=8.0)
    activations = min((float(value) for value in values.get("activation_bits", ())), default=8.0)
    worst = max(layers, key=lambda shape: shape.terms)
    needed = float(needed_bits(worst, weights, activations))
    if widest < needed:
        problem = (
            f"a plaintext modulus of {widest:g} bits does not hold the sums of {worst.name}: "
            f"{worst.terms} products of {weights:g} and {activations:g} bits need {needed:.1f} bits"
        )
        most = widest - log2(2 * worst.terms)
        hint = f"plain_bits of {int(needed) + 1} or more, or operands of {most:.0f} bits together"
        raise SpecError(problem, hint=hint, part=["plain_bits"])
