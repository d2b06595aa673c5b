"""Design parameters of a training plan, and their conversion to arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dse.core.batch import Batch
from dse_evaluators.clusters.training.kernels import FORMATS
from dse_evaluators.clusters.training.training_plan import (
    ACTIVATION_FORMATS,
    GRADIENT_FORMATS,
    OFFLOADED,
    RECOMPUTED,
    SCHEDULES,
    TrainingPlan,
)
from dse_evaluators.reading_table import Flag, NumberInput, Reading, Readings, one_of

_COUNT = NumberInput(1, 1e9, whole=True)
_FLAGS = ("sequence_parallel", "overlap", "overlap_experts", "quantized_weights")

READINGS: Mapping[str, Reading] = {
    **dict.fromkeys(("tp", "pp", "dp", "microbatch", "global_batch"), _COUNT),
    **dict.fromkeys(("cp", "ep", "interleave"), _COUNT._replace(default=1.0)),
    **dict.fromkeys(_FLAGS, Flag(default=False)),
    "zero": NumberInput(0, 3, default=0.0, whole=True),
    **dict.fromkeys(
        ("zero_group", "secondary_group"), NumberInput(0, 1e9, default=0.0, whole=True)
    ),
    "recompute": one_of(RECOMPUTED, RECOMPUTED[0]),
    "schedule": one_of(SCHEDULES, SCHEDULES[0]),
    "offload": one_of(OFFLOADED, OFFLOADED[0]),
    "gradient_format": one_of(GRADIENT_FORMATS, GRADIENT_FORMATS[0]),
    "activation_format": one_of(ACTIVATION_FORMATS, ACTIVATION_FORMATS[0]),
    "number_format": one_of(FORMATS, FORMATS[0]),
}

_FIELDS = {"tp": "tensor", "pp": "pipeline", "dp": "data", "cp": "context", "ep": "expert"}
"""Fields of :class:`TrainingPlan` whose names differ from their inputs."""


def plans(batch: Batch, readings: Readings) -> TrainingPlan:
    """Return the training plans of n designs, with one array per parameter, (n,)."""
    found: dict[str, Any] = {  # columns of numbers; flags become masks below
        _FIELDS.get(name, name): column for name, column in readings.columns(batch).items()
    }
    for truth in _FLAGS:
        found[truth] = found[truth] > 0
    return TrainingPlan(**found)
