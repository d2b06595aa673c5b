"""Ranks with which a layer's factors have a given fraction of its weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

Shape = Sequence[int]


def ranks_of(shape: Shape, density: float, factoring: str) -> tuple[int, ...]:
    """Return one rank for two factors, or two for the Tucker-2 of a convolution, at least 1 each.

    Args:
        shape: shape of the weights, (outputs, inputs, ...).
        density: numbers in the factors over those in the weights; ranks are rounded down.
        factoring: ``svd`` or ``tucker-2``; layers that are not convolutions always get an SVD.
    """
    outputs, inputs = shape[0], math.prod(shape[1:])
    if factoring == "svd" or len(shape) < 4:
        return (max(1, math.floor(density * outputs * inputs / (outputs + inputs))),)
    # r1 = s outputs and r2 = s channels: a s^2 + b s = density * a.
    channels = shape[1]
    whole, sides = outputs * inputs, outputs**2 + channels**2
    share = (math.sqrt(sides**2 + 4 * whole * density * whole) - sides) / (2 * whole)
    return max(1, math.floor(share * outputs)), max(1, math.floor(share * channels))


def factored_weights(shape: Shape, density: float, factoring: str) -> int:
    """Return the number of weights in the factors."""
    outputs, inputs = shape[0], math.prod(shape[1:])
    ranks = ranks_of(shape, density, factoring)
    if len(ranks) == 1:
        return ranks[0] * (outputs + inputs)
    first, second = ranks
    return first * second * math.prod(shape[2:]) + outputs * first + shape[1] * second
