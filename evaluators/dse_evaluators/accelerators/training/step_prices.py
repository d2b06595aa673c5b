"""Energy and area of a training step from its numbers of multiply-accumulates and bytes."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.accelerators.circuits import mac_areas_mm2, mac_energies_j, sram
from dse_evaluators.accelerators.systolic.systolic_parameters import FORMAT_CODES
from dse_evaluators.accelerators.technology import (
    DRAM_J_PER_BYTE,
    NODES_NM,
    SRAM_AREA_MM2,
    SRAM_BUS_BITS,
    SRAM_READ_J,
    SRAM_WRITE_J,
    PowerLaw,
)
from dse_evaluators.readings import look_up_row

LARGEST_BANK_BYTES = 2.0 * 1024**2
"""Largest macro of the SRAM fit; a larger buffer consists of several, whose wires are free."""

SMALLEST_BANK_BYTES = 2.0 * 1024
"""Smallest macro of the SRAM fit; below it, the power law is extrapolated."""

_WORD = int(FORMAT_CODES["fp16"])


class OperationCosts:
    """Energy and area of fp16 multiply-accumulates, SRAM banks and DRAM at a technology node.

    Leakage and the energy of registers, wires and local buffers are not modelled.

    Args:
        node_nm: technology node in nm, 22 to 90: the range of the SRAM fit.
        dram: a key of ``technology.DRAM_J_PER_BYTE``.

    Raises:
        SpecError: the node is outside the fit, or there is no such DRAM.
    """

    def __init__(self, node_nm: float, dram: str) -> None:
        if not NODES_NM[0] <= node_nm <= NODES_NM[1]:
            raise SpecError(f"node_nm is {node_nm:g}", hint="22 to 90 are modelled")
        self.node_nm = node_nm
        self.dram_j_per_byte = look_up_row("dram", dram, DRAM_J_PER_BYTE)
        self.mac_j = float(mac_energies_j(node_nm)[_WORD, _WORD])
        self.mac_mm2 = float(mac_areas_mm2(node_nm)[_WORD, _WORD])

    def energies(
        self,
        *,
        macs: Floats,
        buffer_bytes: Floats,
        read_bytes: Floats,
        written_bytes: Floats,
        dram_bytes: Floats,
    ) -> dict[str, Floats]:
        """Return the energies of MACs, buffer and DRAM in n designs [J], each (n,).

        ``read_bytes`` and ``written_bytes`` are bytes read from and written to the buffer.
        """
        read_j = self._access_j(SRAM_READ_J, buffer_bytes) * read_bytes
        write_j = self._access_j(SRAM_WRITE_J, buffer_bytes) * written_bytes
        return {
            "mac_energy": macs * self.mac_j,
            "buffer_energy": read_j + write_j,
            "dram_energy": dram_bytes * self.dram_j_per_byte,
        }

    def sram_mm2(self, size_bytes: Floats) -> Floats:
        """Return the area of a buffer, in mm2."""
        bank, bus = _bank(size_bytes)
        return sram(SRAM_AREA_MM2, bank, bus, self.node_nm) * size_bytes / bank

    def beyond_fit(self, *sizes_bytes: Floats) -> Floats:
        """Return 1 where a memory is smaller than all macros of the SRAM fit, else 0, (n,)."""
        least = np.min(np.broadcast_arrays(*sizes_bytes), axis=0)
        return (least < SMALLEST_BANK_BYTES).astype(float)

    def _access_j(self, law: PowerLaw, size_bytes: Floats) -> Floats:
        bank, bus = _bank(size_bytes)
        return sram(law, bank, bus, self.node_nm) / (bus / 8.0)


def _bank(size_bytes: Floats) -> tuple[Floats, Floats]:
    """Return the size of a buffer's SRAM banks [bytes], and the bits of their bus, the widest."""
    bank = np.minimum(size_bytes, LARGEST_BANK_BYTES)
    return bank, np.full(np.shape(bank), SRAM_BUS_BITS[1])
