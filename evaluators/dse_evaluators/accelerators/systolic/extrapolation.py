"""Detection of designs outside the range to which the SRAM constants were fitted."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.knobs import Settings

SRAM_BYTES = (2.0 * 1024.0, 2.0 * 1024.0**2)
"""Smallest and largest size of the SRAM macros that the SRAM power laws were fitted to."""

WORDS = ("no", "yes")


def flag_extrapolation(knobs: Settings) -> Floats:
    """Return 1 where a buffer (of size above 0) is outside the range of the SRAM fit, else 0."""
    smallest, largest = SRAM_BYTES
    outside = np.zeros(1, dtype=bool)
    for size in (knobs.ifmap_sram, knobs.filter_sram, knobs.ofmap_sram, knobs.accumulator_sram):
        outside = outside | ((size != 0.0) & ~((size >= smallest) & (size <= largest)))
    return outside.astype(np.float64)
