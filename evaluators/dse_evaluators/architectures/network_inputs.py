"""Inputs of the evaluators of a supernet's networks, and the network of a design."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.values import Value
from dse_evaluators.architectures.shared_networks import (
    KERNELS,
    MOST_DEPTH,
    MOST_WIDTH,
    STAGES,
)
from dse_evaluators.reading_table import NumberInput, Reading, Readings

NETWORK_INPUTS: Mapping[str, Reading] = {
    "resolution": NumberInput(4, 64, default=8, whole=True),
    **{f"width_{stage}": NumberInput(1, MOST_WIDTH[stage], whole=True) for stage in STAGES},
    **{f"depth_{stage}": NumberInput(1, MOST_DEPTH, whole=True) for stage in STAGES},
    **{
        f"kernel_{stage}_{place}": NumberInput(min(KERNELS), max(KERNELS), default=3, whole=True)
        for stage in STAGES
        for place in range(1, MOST_DEPTH + 1)
    },
    "seed": NumberInput(0, 1 << 31, default=0, whole=True),
}


def complete_design(readings: Readings, design: Mapping[str, Value], side: int) -> dict[str, Value]:
    """Return all inputs of a design; the resolution is ``side`` unless the design states it."""
    return {**readings.defaults, "resolution": side, **design, **readings.settled}
