"""Kinds of memory for activations: SRAM, eDRAM or DRAM, at 65 nm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.circuits import sram
from dse_evaluators.accelerators.technology import (
    SRAM_AREA_MM2,
    SRAM_READ_J,
    SRAM_WRITE_J,
)

NODE_NM = 65.0
"""Technology node of the source table."""

BANK_BYTES = 48.0 * 1024
"""Size of a bank: 48 KB in S. Q. Zhang et al.: CAMEL, HPCA 2024, section VII."""

_BUS_BITS = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryKind:
    """Memory technology; ``..._share`` fields are ratios to an SRAM of the same size."""

    area_share: float = 1.0
    access_share: float = 1.0
    leakage_share: float = 1.0
    refresh_accesses: float = 0.0
    """Energy of refreshing a byte over that of reading it; 0: the memory needs no refresh."""


# T. Xia, S. Q. Zhang: Kelle, MICRO 2025, table 1: 4 MB at 65 nm and 105 degrees by DESTINY, cells
# of three transistors. SRAM: 7.3 mm2, 185.9 pJ for a byte, 415 mW; eDRAM: 3.2 mm2, 84.8 pJ, 154 mW,
# 1.14 mJ for a refresh and 45 us of retention (Kong 2008). Only ratios are taken from it, as its
# energies per access are above those of a DRAM. A refresh takes the energy of 3.2 reads there; by
# first principles it would be 2 (a read and a write).
_SRAM_4MB, _EDRAM_4MB = (7.3, 185.9e-12, 415e-3), (3.2, 84.8e-12, 154e-3)
_REFRESH_4MB_J = 1.14e-3
_TABLE_BYTES = 4.0 * 1024**2

KINDS: Mapping[str, MemoryKind] = {
    "sram": MemoryKind(),
    "edram": MemoryKind(
        area_share=_EDRAM_4MB[0] / _SRAM_4MB[0],
        access_share=_EDRAM_4MB[1] / _SRAM_4MB[1],
        leakage_share=_EDRAM_4MB[2] / _SRAM_4MB[2],
        refresh_accesses=_REFRESH_4MB_J / _TABLE_BYTES / _EDRAM_4MB[1],
    ),
    # An assumption: standby and refresh energy of the DRAM are not charged to the network.
    "dram": MemoryKind(area_share=0.0, access_share=0.0, leakage_share=0.0),
}

RETENTION_S = 45e-6
"""Retention time of eDRAM at the temperature of the table, ``RETENTION_CELSIUS``."""

RETENTION_CELSIUS = 105.0

HALVES_EVERY_CELSIUS = 10.0
"""Temperature rise that halves the retention time.

An assumption: junction leakage, which discharges a cell, doubles about every ten degrees.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SramFigures:
    """SRAM bank: energy per byte read and written, leakage and area per byte of capacity."""

    read_j: float
    write_j: float
    leakage_w: float
    mm2: float


def _sram_figures() -> SramFigures:
    """Return the figures of an SRAM: energy and area of the CACTI fit, leakage of a table.

    CACTI's default cells leak fifteen times as much as the table's: too much for a battery-powered
    device.
    """
    size, bus = np.array(BANK_BYTES), np.array(_BUS_BITS)
    access_bytes = _BUS_BITS / 8
    return SramFigures(
        read_j=float(sram(SRAM_READ_J, size, bus, NODE_NM)) / access_bytes,
        write_j=float(sram(SRAM_WRITE_J, size, bus, NODE_NM)) / access_bytes,
        leakage_w=_SRAM_4MB[2] / _TABLE_BYTES,
        mm2=float(sram(SRAM_AREA_MM2, size, bus, NODE_NM)) / BANK_BYTES,
    )


SRAM = _sram_figures()


def retention_s(celsius: Floats, at_reference_s: Floats) -> Floats:
    """Return the retention time of an eDRAM cell at a temperature, in seconds."""
    return at_reference_s * 2.0 ** ((RETENTION_CELSIUS - celsius) / HALVES_EVERY_CELSIUS)
