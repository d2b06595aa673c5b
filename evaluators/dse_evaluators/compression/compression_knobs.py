"""Settings of a network's compression, with their defaults and ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from dse.core.values import Value
from dse_evaluators.formats.words import FORMATS
from dse_evaluators.readings import flag, number, one_among, word

GRANULARITIES = ("tensor", "channel")
MAX_SPARSITY = 0.95

check_knob = one_among(
    {
        **dict.fromkeys(("weight_format", "activation_format"), word(*FORMATS)),
        "granularity": word(*GRANULARITIES),
        "sparsity": number(0, MAX_SPARSITY),
        "filter_keep": number(0, 1),
        "bias_correction": flag,
    }
)
"""Check of a knob's value; raises SpecError if the knob is unknown or the value is invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionConfig:
    """Settings of a compression; the defaults leave the network as it was trained.

    ``granularity`` selects one scale per weight tensor or one per output channel. ``filter_keep``
    is the fraction of filters kept, at least one per layer; ``sparsity`` is the fraction of zeros
    among the weights of those filters. ``bias_correction`` shifts the biases so that each layer's
    mean output equals that of the uncompressed network.
    """

    weight_format: str = "fp32"
    granularity: str = "channel"
    activation_format: str = "fp32"
    sparsity: float = 0.0
    filter_keep: float = 1.0
    bias_correction: bool = True


KNOBS: tuple[str, ...] = tuple(field.name for field in fields(CompressionConfig))


def recipe_of(values: Mapping[str, Value]) -> CompressionConfig:
    """Return compression settings with the given values, and the others at their defaults.

    Raises:
        SpecError: a setting is unknown, or its value is invalid.
    """
    for name, value in values.items():
        check_knob(name, value)
    plain = CompressionConfig()
    return CompressionConfig(
        weight_format=str(values.get("weight_format", plain.weight_format)),
        granularity=str(values.get("granularity", plain.granularity)),
        activation_format=str(values.get("activation_format", plain.activation_format)),
        sparsity=float(values.get("sparsity", plain.sparsity)),
        filter_keep=float(values.get("filter_keep", plain.filter_keep)),
        bias_correction=bool(values.get("bias_correction", plain.bias_correction)),
    )
