"""The vector unit: so many operations on every output, by lanes beside the array.

Each lane does one operation a cycle and is an fp32 multiplier with its adder, whatever the
operation is. Without lanes nothing is counted: outputs are as the array gives them.
"""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.circuits import logic_energy_factor
from dse_evaluators.accelerators.systolic.knobs import Settings
from dse_evaluators.accelerators.technology import (
    FP32_ADD,
    FP32_MULTIPLY,
    REFERENCE_NM,
    SRAM_AREA_MM2,
)


def absent(knobs: Settings) -> bool:
    """No design has lanes, however the designs are cut into parts."""
    return len(knobs.vector_lanes) == 1 and not knobs.vector_lanes.any()


def vector_cycles(outputs: Floats, knobs: Settings) -> Floats:
    """Cycles for all operations on this many outputs; none without lanes."""
    lanes = np.where(knobs.vector_lanes > 0, knobs.vector_lanes, np.inf)
    return np.ceil(outputs * knobs.vector_ops / lanes)


def busy_cycles(array: Floats, vector: Floats, knobs: Settings) -> Floats:
    """Both together: the longer one where the vector unit works on what comes out, else both."""
    return np.where(knobs.vector_hidden > 0, np.maximum(array, vector), array + vector)


def holds_up(array: Floats, vector: Floats) -> Mask:
    """Return where the vector unit takes longer than the array."""
    return vector > array


def lane_energy_j(node_nm: float) -> float:
    """Energy of one operation."""
    at_reference = FP32_MULTIPLY.energy_j + FP32_ADD.energy_j
    return at_reference * logic_energy_factor(node_nm)


def lane_area_mm2(node_nm: float) -> float:
    """Area of one lane; logic shrinks as the SRAM does."""
    at_reference = FP32_MULTIPLY.area_mm2 + FP32_ADD.area_mm2
    return at_reference * float((node_nm / REFERENCE_NM) ** SRAM_AREA_MM2.node)
