"""Stages of a convolutional network, and their exact work under other depths and widths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError, nearest

_SQUEEZED = 0.25
_EXPANSION = 4
"""Output channels of a bottleneck for each channel of its window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledStage:
    """Stage of a convolutional network: layers of one kind, the first one with the stride.

    ``squeeze`` adds squeeze-and-excitation to inverted residuals. Scaling changes neither width nor
    depth of a stage if ``scaled`` is false, and not its depth if ``grows`` is false.
    """

    block: str
    depth: int = 1
    width: int = 0
    stride: int = 1
    kernel: int = 3
    ratio: int = 1
    squeeze: bool = False
    scaled: bool = True
    grows: bool = True

    @property
    def outputs(self) -> int:
        """Number of output channels, as a multiple of the stage's width in channels."""
        return _EXPANSION if self.block == "bottleneck" else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """Multiply-accumulates, parameters and outputs of convolutions of n designs, each (n,)."""

    macs: Floats
    parameters: Floats
    activations: Floats

    def __add__(self, other: StageWork) -> StageWork:
        """Return the sum of two parts of a network."""
        return StageWork(
            macs=self.macs + other.macs,
            parameters=self.parameters + other.parameters,
            activations=self.activations + other.activations,
        )

    def times(self, count: Floats) -> StageWork:
        """Return the work of ``count`` equal layers."""
        return StageWork(
            macs=self.macs * count,
            parameters=self.parameters * count,
            activations=self.activations * count,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledLayer:
    """Sizes of a scaled layer: channels of inputs and outputs, and image sides, (n,)."""

    inputs: Floats
    width: Floats
    side: Floats
    after: Floats
    is_first: bool


def _convolve(
    inputs: Floats, outputs: Floats, kernel: int, after: Floats, groups: Floats | float = 1.0
) -> StageWork:
    """Return a convolution without bias, and its batch normalisation."""
    weights = inputs * outputs * kernel**2 / groups
    return StageWork(
        macs=weights * after**2,
        parameters=weights + 2 * outputs,
        activations=outputs * after**2,
    )


def _convolution(stage: ScaledStage, shape: ScaledLayer) -> StageWork:
    return _convolve(shape.inputs, shape.width, stage.kernel, shape.after)


def _bottleneck(stage: ScaledStage, shape: ScaledLayer) -> StageWork:
    outputs = _EXPANSION * shape.width
    found = (
        _convolve(shape.inputs, shape.width, 1, shape.side)
        + _convolve(shape.width, shape.width, stage.kernel, shape.after)
        + _convolve(shape.width, outputs, 1, shape.after)
    )
    return found + _convolve(shape.inputs, outputs, 1, shape.after) if shape.is_first else found


def _inverted_residual(stage: ScaledStage, shape: ScaledLayer) -> StageWork:
    wide = stage.ratio * shape.inputs
    found = _convolve(wide, wide, stage.kernel, shape.after, groups=wide)
    found += _convolve(wide, shape.width, 1, shape.after)
    if stage.ratio > 1:
        found += _convolve(shape.inputs, wide, 1, shape.side)
    if stage.squeeze:
        narrow = np.maximum(np.floor(_SQUEEZED * shape.inputs), 1.0)
        found += StageWork(
            macs=2 * wide * narrow,
            parameters=2 * wide * narrow + wide + narrow,
            activations=wide + narrow,
        )
    return found


BLOCKS: Mapping[str, Callable[[ScaledStage, ScaledLayer], StageWork]] = {
    "conv": _convolution,
    "bottleneck": _bottleneck,
    "mbconv": _inverted_residual,
}
POOL, DENSE = "pool", "dense"


def stage_of(given: Mapping[str, Any], place: int) -> ScaledStage:
    """Return the network stage that a mapping of a study file describes.

    Raises:
        SpecError: a key is unknown, or a value is invalid.
    """
    known = [field.name for field in fields(ScaledStage)]
    part = ["stages", str(place)]
    wrong = next((name for name in given if name not in known), None)
    if wrong is not None:
        raise SpecError(f"a stage has no {wrong!r}", hint=nearest(str(wrong), known), part=part)
    blocks = [*BLOCKS, POOL, DENSE]
    if given.get("block") not in blocks:
        hint = nearest(str(given.get("block", "")), blocks) or ", ".join(blocks)
        raise SpecError(f"a stage cannot be {given.get('block')!r}", hint=hint, part=part)
    numbers = {name: given.get(name, 1) for name in ("depth", "width", "stride", "kernel", "ratio")}
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            problem = f"{name} of a stage is {value!r}, no whole number above 0"
            raise SpecError(problem, part=part)
    if "width" not in given and given["block"] != POOL:
        raise SpecError("a stage has no width", hint="width: 64", part=part)
    return ScaledStage(**dict(given))


def stage_work(
    stage: ScaledStage, inputs: Floats, side: Floats, width: Floats, depth: Floats
) -> tuple[StageWork, Floats, Floats]:
    """Return the work of a stage in n designs, its output channels and its side, each (n,)."""
    after = np.ceil(side / stage.stride)
    none = np.zeros_like(side)
    if stage.block == POOL:
        return StageWork(macs=none, parameters=none, activations=none), inputs, after
    if stage.block == DENSE:
        weights = inputs * width
        dense = StageWork(macs=weights, parameters=weights + width, activations=width)
        return dense, width, np.ones_like(side)
    block, outputs = BLOCKS[stage.block], stage.outputs * width
    first = ScaledLayer(inputs=inputs, width=width, side=side, after=after, is_first=True)
    other = ScaledLayer(inputs=outputs, width=width, side=after, after=after, is_first=False)
    found = block(stage, first) + block(stage, other).times(depth - 1)
    return found, outputs, after


def total_work(
    stages: Sequence[ScaledStage],
    channels: int,
    side: Floats,
    scale: Callable[[ScaledStage], tuple[Floats, Floats]],
) -> StageWork:
    """Return the work of networks; ``scale`` returns width and depth of a stage, each (n,)."""
    none = np.zeros_like(side)
    found = StageWork(macs=none, parameters=none, activations=none)
    inputs = np.full_like(side, channels)
    for stage in stages:
        work, inputs, side = stage_work(stage, inputs, side, *scale(stage))
        found += work
    return found
