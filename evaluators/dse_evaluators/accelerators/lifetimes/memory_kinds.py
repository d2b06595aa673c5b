"""Memories for a network's activations: SRAM, eDRAM or DRAM, at 65 nm."""

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
"""The node of the table that the rows come from."""

BANK_BYTES = 48.0 * 1024
"""S. Q. Zhang et al.: CAMEL, HPCA 2024, section VII: banks of 48 KB."""

_BUS_BITS = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryKind:
    """A memory beside an SRAM of the same size; shares are of the SRAM's figures."""

    on_chip: bool
    area_share: float = 1.0
    access_share: float = 1.0
    leakage_share: float = 1.0
    refresh_accesses: float = 0.0
    """What refreshing a byte costs, in reads of it; 0: it is never refreshed."""


# T. Xia, S. Q. Zhang: Kelle, MICRO 2025, table 1: 4 MB at 65 nm and 105 degrees by DESTINY, cells
# of three transistors. SRAM: 7.3 mm2, 185.9 pJ for a byte, 415 mW; eDRAM: 3.2 mm2, 84.8 pJ, 154 mW,
# 1.14 mJ for a refresh and 45 us of retention (Kong 2008). Shares are taken from it, no sizes: its
# energies of an access are above those of a DRAM. What refreshing costs is 3.2 reads there and
# would be 2 (a read and a write) by first principles.
_SRAM_4MB, _EDRAM_4MB = (7.3, 185.9e-12, 415e-3), (3.2, 84.8e-12, 154e-3)
_REFRESH_4MB_J = 1.14e-3
_TABLE_BYTES = 4.0 * 1024**2

KINDS: Mapping[str, MemoryKind] = {
    "sram": MemoryKind(on_chip=True),
    "edram": MemoryKind(
        on_chip=True,
        area_share=_EDRAM_4MB[0] / _SRAM_4MB[0],
        access_share=_EDRAM_4MB[1] / _SRAM_4MB[1],
        leakage_share=_EDRAM_4MB[2] / _SRAM_4MB[2],
        refresh_accesses=_REFRESH_4MB_J / _TABLE_BYTES / _EDRAM_4MB[1],
    ),
    # An assumption: what a DRAM takes for standing by and for refreshing is not the network's.
    "dram": MemoryKind(on_chip=False, area_share=0.0, access_share=0.0, leakage_share=0.0),
}

RETENTION_S = 45e-6
"""At the temperature of the table."""

RETENTION_CELSIUS = 105.0

HALVES_EVERY_CELSIUS = 10.0
"""An assumption: the leakage of a junction doubles about every ten degrees, and empties a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SramFigures:
    """An SRAM bank for each byte that it holds or moves."""

    read_j: float
    write_j: float
    leakage_w: float
    mm2: float


def _sram_figures() -> SramFigures:
    """Energy and area by the CACTI fit; leakage by the table.

    CACTI's default cells leak fifteen times as much, which no battery would bear.
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
    """Return how long a cell of eDRAM retains its bit at a temperature."""
    return at_reference_s * 2.0 ** ((RETENTION_CELSIUS - celsius) / HALVES_EVERY_CELSIUS)
