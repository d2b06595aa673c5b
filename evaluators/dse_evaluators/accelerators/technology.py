"""What circuits cost: energies and areas per operation, as tables with their sources.

Energies and areas are in joules and mm2 at 45 nm and 0.9 V unless a column says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NODES_NM = (22.0, 90.0)
"""The nodes that the SRAM fit covers, smallest and largest."""

REFERENCE_NM = 45.0

NOMINAL_V = 0.9
"""The voltage of the energies below: Horowitz 2014, figure 1.1.9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An arithmetic unit; ``width`` is what its cost grows with: bits, or the significand's."""

    width: int
    energy_j: float
    energy_7nm_j: float
    area_mm2: float


# Energies at 45 nm: M. Horowitz, Computing's Energy Problem (and what we can do about it),
# ISSCC 2014, figure 1.1.9. Energies at 7 nm: N. Jouppi et al., Ten Lessons From Three Generations
# Shaped Google's TPUv4i, ISCA 2021, table 2. Areas: W. Dally, High-Performance Hardware for
# Machine Learning, NIPS 2015 tutorial, synthesis for a 45 nm library.
INT8_MULTIPLY = Operation(width=8, energy_j=0.2e-12, energy_7nm_j=0.07e-12, area_mm2=282e-6)
INT32_MULTIPLY = Operation(width=32, energy_j=3.1e-12, energy_7nm_j=1.48e-12, area_mm2=3495e-6)
FP16_MULTIPLY = Operation(width=11, energy_j=1.1e-12, energy_7nm_j=0.34e-12, area_mm2=1640e-6)
FP32_MULTIPLY = Operation(width=24, energy_j=3.7e-12, energy_7nm_j=1.31e-12, area_mm2=7700e-6)
INT32_ADD = Operation(width=32, energy_j=0.1e-12, energy_7nm_j=0.03e-12, area_mm2=137e-6)
FP32_ADD = Operation(width=24, energy_j=0.9e-12, energy_7nm_j=0.38e-12, area_mm2=4184e-6)

OPERATIONS = (
    INT8_MULTIPLY,
    INT32_MULTIPLY,
    FP16_MULTIPLY,
    FP32_MULTIPLY,
    INT32_ADD,
    FP32_ADD,
)

ACCUMULATOR_BITS = 32.0
"""Partial sums: 32 bits, as in N. Jouppi et al., In-Datacenter Performance Analysis of a Tensor
Processing Unit, ISCA 2017, section 2; as fp32 where an operand is a float."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """``scale * KiB**size * (bits / 64)**bus * (nm / 45)**node`` of an SRAM macro."""

    scale: float
    size: float
    bus: float
    node: float


# Least absolute deviations in the logarithm over 100 runs of CACTI 7 (HP Labs; the binary of
# zigzag-dse 3.9.1 with its cell types): 5 nodes of 22-90 nm, 10 sizes of 2 KiB-2 MiB, buses of 64
# and 256 bits. Median errors over the 100: read 7.9 %, write 3.9 %, area 4.7 %; over sizes left out
# of the fit: 9.1 %, 4.7 %, 5.5 %. Largest: read 50 % and area 56 %, both of small macros (16 and
# 2 KiB) with the wide bus, write 27 %.
SRAM_READ_J = PowerLaw(scale=2.1098e-12, size=0.5928, bus=0.5990, node=1.6663)
SRAM_WRITE_J = PowerLaw(scale=3.1922e-12, size=0.4890, bus=0.8940, node=1.7334)
SRAM_AREA_MM2 = PowerLaw(scale=0.008354, size=0.9708, bus=0.0727, node=1.9137)

SRAM_BUS_BITS = (64.0, 256.0)
"""The widths of one access that the fit covers; a wider edge is served by banks of the widest."""

# Leakage over area of the same runs, medians over sizes and buses, by node in nm. A tenth is the
# scatter of all but the 2 KiB macros with the wide bus, which leak half as much for their area.
LEAKAGE_W_PER_MM2: Mapping[float, float] = {
    22.0: 0.2097,
    32.0: 0.2048,
    45.0: 0.2092,
    65.0: 0.1119,
    90.0: 0.0195,
}

# lpddr2: Horowitz, as above (640 pJ for 32 bits). ddr4: Jouppi 2021, as above (1300 pJ for 64
# bits). hbm2: M. O'Connor et al., Fine-Grained DRAM, MICRO 2017 (3.97 pJ for a bit).
DRAM_J_PER_BYTE: Mapping[str, float] = {
    "lpddr2": 640e-12 / 4,
    "ddr4": 1300e-12 / 8,
    "hbm2": 3.97e-12 * 8,
}
