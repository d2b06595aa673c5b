"""Tables of energy and area per circuit operation, with their sources.

Energies and areas are in joules and mm2 at 45 nm and 0.9 V unless a column states another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NODES_NM = (22.0, 90.0)
"""Smallest and largest node that the SRAM fit covers."""

REFERENCE_NM = 45.0

NOMINAL_V = 0.9
"""Supply voltage of the energies below: Horowitz 2014, figure 1.1.9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Arithmetic operation whose energy and area grow with the width of its operands."""

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
INT8_ADD = Operation(width=8, energy_j=0.03e-12, energy_7nm_j=0.007e-12, area_mm2=36e-6)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """Power law of an SRAM macro: ``scale * KiB**size * (bits / 64)**bus * (nm / 45)**node``."""

    scale: float
    size: float
    bus: float
    node: float


# Least absolute deviations in the logarithm over 100 runs of CACTI 7 (HP Labs; the binary of
# zigzag-dse 3.9.1 with its cell types): 5 nodes of 22-90 nm, 10 sizes of 2 KiB-2 MiB, buses of 64
# and 256 bits; `benchmarks/sram_fit.py` fits them again. Median errors over the 100: read 7.9 %,
# write 5.6 %, area 4.6 %, access 5.1 %; over sizes left out of the fit: 9.1, 6.5, 5.5 and 6.3 %.
# Largest: read 50 %, area 56 %, access 38 %, of small macros with the wide bus, write 27 %. Writes
# share the node exponent of reads, so that both energies scale with the node by one factor; with
# an exponent of their own (1.734) their error is 3.9 %.
SRAM_READ_J = PowerLaw(scale=2.1100e-12, size=0.5928, bus=0.5990, node=1.6666)
SRAM_WRITE_J = PowerLaw(scale=3.2518e-12, size=0.4861, bus=0.8833, node=1.6666)
SRAM_AREA_MM2 = PowerLaw(scale=0.008350, size=0.9709, bus=0.0731, node=1.9126)
SRAM_ACCESS_S = PowerLaw(scale=0.14886e-9, size=0.4075, bus=0.0092, node=0.8815)

SRAM_BUS_BITS = (64.0, 256.0)
"""Smallest and largest access width that the fit covers; wider edges use several widest banks."""

# Leakage over area in the same runs, medians over sizes and buses, by node in nm. Half of the runs
# of a node are within 5 to 9 % of it; 2 KiB macros with the wide bus leak half as much per area.
# Interpolating a node's median from its neighbours alone is off by 2 % (32 nm), 27 % (45 nm) and
# 47 % (65 nm): between tabulated nodes, and below them, leakage is a rough estimate.
LEAKAGE_W_PER_MM2: Mapping[float, float] = {
    22.0: 0.2097,
    32.0: 0.2048,
    45.0: 0.2092,
    65.0: 0.1119,
    90.0: 0.0195,
}

# lpddr2: Horowitz, as above (640 pJ for 32 bits). ddr4: Jouppi 2021, as above (1300 pJ for 64
# bits), and gddr6 (350 to 480 pJ; the midpoint). hbm2: M. O'Connor et al., Fine-Grained DRAM, MICRO
# 2017 (3.97 pJ per bit), as is gddr5 (14 pJ). lpddr4: 8 pJ per bit, from the DRAM table of
# Accelergy's CACTI plug-in. No sourced figure was found for lpddr5, ddr5, hbm2e and hbm3.
DRAM_J_PER_BYTE: Mapping[str, float] = {
    "lpddr2": 640e-12 / 4,
    "lpddr4": 8e-12 * 8,
    "ddr4": 1300e-12 / 8,
    "gddr5": 14e-12 * 8,
    "gddr6": (350e-12 + 480e-12) / 2 / 8,
    "hbm2": 3.97e-12 * 8,
}
