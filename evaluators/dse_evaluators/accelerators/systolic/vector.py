"""Vector unit: a fixed number of operations on every output, in lanes next to the array.

Each lane performs one operation per cycle; its energy and area are those of an fp32 multiplier
with an adder, whatever the operation. Without lanes, no vector operations are counted.
"""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.circuits import logic_energy_factor
from dse_evaluators.accelerators.systolic.systolic_parameters import Settings
from dse_evaluators.accelerators.technology import (
    FP32_ADD,
    FP32_MULTIPLY,
    REFERENCE_NM,
    SRAM_AREA_MM2,
)


def absent(knobs: Settings) -> bool:
    """Return whether no design has a vector unit: lanes are fixed at 0."""
    return len(knobs.vector_lanes) == 1 and not knobs.vector_lanes.any()


def vector_cycles(outputs: Floats, knobs: Settings) -> Floats:
    """Return the cycles of vector operations on a number of outputs; 0 without lanes."""
    lanes = np.where(knobs.vector_lanes > 0, knobs.vector_lanes, np.inf)
    return np.ceil(outputs * knobs.vector_ops / lanes)


def busy_cycles(array: Floats, vector: Floats, knobs: Settings) -> Floats:
    """Return the cycles in which the array and the vector unit are busy.

    The cycles are the maximum of both if the vector unit works in parallel with the array
    (``vector_hidden``), otherwise their sum.
    """
    return np.where(knobs.vector_hidden > 0, np.maximum(array, vector), array + vector)


def holds_up(array: Floats, vector: Floats) -> Mask:
    """Return a mask of layers and designs whose vector unit takes longer than the array, (l, n)."""
    return vector > array


def lane_energy_j(node_nm: float) -> float:
    """Return the energy of one vector operation at a node, in joules."""
    at_reference = FP32_MULTIPLY.energy_j + FP32_ADD.energy_j
    return at_reference * logic_energy_factor(node_nm)


def lane_area_mm2(node_nm: float) -> float:
    """Return the area of one vector lane at a node in mm2; logic area scales as SRAM area does."""
    at_reference = FP32_MULTIPLY.area_mm2 + FP32_ADD.area_mm2
    return at_reference * float((node_nm / REFERENCE_NM) ** SRAM_AREA_MM2.node)
