"""Dies per wafer, yield laws, wafer prices and design costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError

WAFER_MM = 300.0
DEFECTS_PER_MM2 = 0.1e-2
"""Defect density of a mature process.

TSMC reported 0.09 per cm2 at 7 nm (VLSI 2019) and 0.10 to 0.11 at 5 nm (Technology Symposium 2020).
"""

# Dollars. S. Khan, A. Mann, AI Chips: What They Are and Why They Matter, CSET 2020, calculation of
# foundry sale price per chip: an estimate of the price of a 300 mm wafer from TSMC in 2020.
WAFER_DOLLARS: Mapping[float, float] = {
    90.0: 1650.0,
    65.0: 1937.0,
    40.0: 2274.0,
    28.0: 2891.0,
    20.0: 3677.0,
    16.0: 3984.0,
    10.0: 5992.0,
    7.0: 9346.0,
    5.0: 16988.0,
}

# Dollars. International Business Strategies 2018, as printed by SemiEngineering and others: cost of
# designing a large chip, including software. Designers of arrays of one small circuit report much
# less (SemiEngineering: What Will That Chip Cost?, 2023).
DESIGN_DOLLARS: Mapping[float, float] = {
    65.0: 28.5e6,
    40.0: 37.7e6,
    28.0: 51.3e6,
    22.0: 70.3e6,
    16.0: 106.3e6,
    10.0: 174.4e6,
    7.0: 297.8e6,
    5.0: 542.2e6,
}


def poisson(failures: Floats, clusters: float) -> Floats:  # noqa: ARG001 - one signature for all laws
    """Return the yield (share of good dies) for independently distributed defects.

    ``faults`` is the mean number of defects per die.
    """
    return np.exp(-failures)


def murphy(failures: Floats, clusters: float) -> Floats:  # noqa: ARG001
    """Return the yield (share of good dies) for a triangular distribution of defect density.

    Source: B. Murphy, Proc. IEEE 1964.
    """
    some = np.where(failures > 0, failures, 1.0)
    return np.where(failures > 0, (-np.expm1(-some) / some) ** 2, 1.0)


def negative_binomial(failures: Floats, clusters: float) -> Floats:
    """Return the yield (share of good dies) for clustered defects.

    Source: C. Stapper, IBM J. Research and Development 1983.
    """
    return (1.0 + failures / clusters) ** -clusters


def seeds(failures: Floats, clusters: float) -> Floats:  # noqa: ARG001
    """Return the yield (share of good dies) for an exponential distribution of defect density.

    Source: R. Seeds, IEEE Int. Electron Devices Meeting 1967.
    """
    return 1.0 / (1.0 + failures)


YIELDS: Mapping[str, Callable[[Floats, float], Floats]] = {
    "poisson": poisson,
    "murphy": murphy,
    "negative-binomial": negative_binomial,
    "seeds": seeds,
}
"""Yield laws: the share of dies without a fault, from the mean number of faults per die."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wafer:
    """Round wafer with an unusable ring of width ``edge_mm`` along its edge."""

    diameter_mm: float = WAFER_MM
    edge_mm: float = 3.0

    @property
    def usable_mm2(self) -> float:
        """Area of the wafer within the unusable edge ring, in mm2."""
        return math.pi * (self.diameter_mm / 2.0 - self.edge_mm) ** 2

    def dies(self, area_mm2: Floats) -> Floats:
        """Return the number of complete dies per wafer.

        The number is the usable area divided by the die's area, minus the dies that the wafer's
        edge cuts.

        Source:
            D. de Vries: Investigation of Gross Die per Wafer Formulas, IEEE Trans. Semiconductor
            Manufacturing 2005, equation 3, for square dies.
        """
        usable = self.diameter_mm - 2.0 * self.edge_mm
        whole = self.usable_mm2 / area_mm2
        cut = math.pi * usable / np.sqrt(2.0 * area_mm2)
        return np.maximum(np.floor(whole - cut), 0.0)


def wafer_dollars(nm: float) -> float:
    """Return the price of a wafer in dollars, interpolated log-log between tabulated nodes.

    Raises:
        SpecError: the node is outside the table.
    """
    if not min(WAFER_DOLLARS) <= nm <= max(WAFER_DOLLARS):
        raise SpecError(f"no wafer price is known for {nm:g} nm", hint="5 to 90, or wafer_price")
    return _between(WAFER_DOLLARS, nm)


def design_dollars(nm: float) -> float:
    """Return the one-time cost of designing a chip in dollars; nodes above 65 nm cost as 65 nm.

    Raises:
        SpecError: the node is smaller than the smallest tabulated one.
    """
    if not nm >= min(DESIGN_DOLLARS):
        raise SpecError(f"no design cost is known for {nm:g} nm", hint="5 or more")
    return _between(DESIGN_DOLLARS, nm)


def _between(table: Mapping[float, float], nm: float) -> float:
    """Return a table's value at node ``nm``, interpolated log-log between tabulated nodes."""
    nodes = sorted(table)
    logs = np.log([table[node] for node in nodes])
    return float(np.exp(np.interp(np.log(nm), np.log(nodes), logs)))
