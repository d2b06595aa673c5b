"""The evaluator ``architectures.scaling``: depth, width and resolution of a network, scaled."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Floats
from dse.errors import PluginError, SpecError
from dse_evaluators.architectures.scaled_stages import DENSE, ScaledStage, stage_of, total_work
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading

_INPUTS: Mapping[str, Reading] = {
    "scale": NumberInput(1e-3, 1e4, default=1.0),
    "width_share": NumberInput(0, 1, default=0.8),
    "depth_scale": NumberInput(1e-2, 100, default=1.0),
    "width_scale": NumberInput(1e-2, 100, default=1.0),
    "resolution": NumberInput(1, 1 << 16, default=224, whole=True),
}
_METRICS = (
    Metric("macs", goal="minimize"),
    Metric("parameters", goal="minimize"),
    Metric("activations", goal="minimize"),
)


class ScaledNetwork(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version=""):
    """Multiply-accumulates, parameters and activations of a scaled convolutional network, exactly.

    ``scale`` is the factor of multiply-accumulates that compound scaling aims at: the width takes
    the share ``width_share`` of its exponent, depth and resolution half of the rest each. Depth,
    width and resolution may be scaled directly instead, or in addition. Depths are rounded up,
    widths to multiples of ``round_width``.

    Args:
        stages: the stages of the network, from its input: ``{block: mbconv, depth: 2, width: 24,
            stride: 2, kernel: 3, ratio: 6, squeeze: true}``. Blocks are ``conv``, ``bottleneck``
            (a width of 64 has 256 outputs), ``mbconv``, ``pool`` and ``dense``. ``scaled: false``
            keeps depth and width of a stage, ``grows: false`` its depth.
        channels: channels of the image.
        round_width: widths are multiples of it, and at most a tenth less than stated; 0 keeps
            fractions, of depths and resolutions, too.

    Inputs:
        width_share: 1/3 scales all three alike, as EfficientNet about does; 0.8 is that of fast
            compound scaling.
        resolution: side of the images before scaling.

    Limits:
        No accuracy. Batch normalisation counts in the parameters, and not in the others.
        Activations are outputs of convolutions and dense layers.

    Error:
        Exact: 8 parameter counts of EfficientNet-B0 to B7 and 3 of ResNet-50 to 152.

    Source:
        Dollar, Singh, Girshick: Fast and Accurate Model Scaling, 2021, section 4; Tan, Le:
        EfficientNet, 2019, and its rounding of widths.

    Example:
        options:
          stages:
            - {block: conv, width: 32, stride: 2}
            - {block: mbconv, depth: 2, width: 64, stride: 2, ratio: 6}
            - {block: dense, width: 1000, scaled: false}
        parameters: {scale: [1, 2, 4], width_share: [0.33, 0.8]}

    Raises:
        PluginError: an option is invalid.
        SpecError: a stage is invalid.
    """

    stages: Sequence[Mapping[str, Any]]
    channels: int = 3
    round_width: int = 8
    resolution: int | None = None
    width_share: float | None = None

    def __post_init__(self) -> None:
        given: object = self.stages
        if not isinstance(given, list | tuple) or not all(isinstance(x, Mapping) for x in given):
            raise PluginError("stages is no list of mappings", hint="{block: conv, width: 32}")
        self._stages = [stage_of(one, place) for place, one in enumerate(self.stages)]
        if not self._stages or self.channels < 1 or self.round_width < 0:
            raise PluginError(
                "there is a stage and a channel at least, and round_width is 0 at least"
            )
        if any(one.block == DENSE for one in self._stages[:-1]):
            raise SpecError("a dense stage is the last one", part=["stages"])
        content = f"{self._stages} {self.channels} {self.round_width}"
        self.version = f"1-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats]) -> Mapping[str, Floats]:
        """Return the metrics of n designs."""
        share, scale = inputs["width_share"], inputs["scale"]
        rest = scale ** ((1 - share) / 2)
        width = inputs["width_scale"] * scale ** (share / 2)
        depth = inputs["depth_scale"] * rest
        side = inputs["resolution"] * np.sqrt(rest)
        if self.round_width:
            side = np.rint(side)

        def scaled(stage: ScaledStage) -> tuple[Floats, Floats]:
            usual = np.full_like(side, stage.width), np.full_like(side, stage.depth)
            if not stage.scaled:
                return usual
            layers = stage.depth * depth if stage.grows else usual[1]
            if not self.round_width:
                return stage.width * width, layers
            return self._round(stage.width * width, stage.width), np.ceil(layers - 1e-9)

        found = total_work(self._stages, self.channels, side, scaled)
        return {
            "macs": found.macs,
            "parameters": found.parameters,
            "activations": found.activations,
        }

    def _round(self, widths: Floats, usual: int) -> Floats:
        """Return widths as multiples, not below 90 % of the requested widths."""
        unit = float(self.round_width)
        near = np.maximum(np.floor(widths / unit + 0.5) * unit, unit)
        rounded = np.where(near < 0.9 * widths, near + unit, near)
        return np.where(widths == usual, float(usual), rounded)
