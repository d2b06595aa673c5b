"""Kinds of DRAM: energy per byte, bandwidth per channel, and embodied carbon per byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse.errors import SpecError
from dse_evaluators.accelerators.technology import DRAM_J_PER_BYTE
from dse_evaluators.carbon.memories import memory_kg_per_byte
from dse_evaluators.readings import look_up_row


@dataclass(frozen=True, slots=True, kw_only=True)
class DramKind:
    """Kind of DRAM, such as DDR4 or HBM2, with its energy, bandwidth and carbon.

    ``j_per_byte`` is ``None`` if no published value was found. ``embodied`` is a key of
    :mod:`dse_evaluators.carbon.memories`, whose carbon per byte is used. With ``stand_in`` that key
    is an older kind of DRAM, as there is no value for this kind.
    """

    name: str
    channel_bits: int
    transfers_per_s: float
    embodied: str
    stand_in: bool = False

    @property
    def j_per_byte(self) -> float | None:
        """Energy in joules per byte read or written."""
        return DRAM_J_PER_BYTE.get(self.name)

    @property
    def channel_bytes_per_s(self) -> float:
        """Peak bandwidth of a channel, or of an entire stack of HBM, in bytes per second."""
        return self.channel_bits / 8 * self.transfers_per_s

    @property
    def kg_per_byte(self) -> float:
        """Embodied carbon per byte of capacity, in kg."""
        return memory_kg_per_byte(self.embodied)


# Width and rate: JEDEC JESD209-2 (lpddr2-1066), JESD209-4 (lpddr4-4267), JESD209-5 (lpddr5-6400),
# JESD79-4 (ddr4-3200), JESD79-5 (ddr5-6400, both subchannels), JESD212 (gddr5, 8 Gb/s), JESD250
# (gddr6, 16 Gb/s), JESD235 (hbm2, 2 Gb/s; hbm2e, 3.6 Gb/s), JESD238 (hbm3, 6.4 Gb/s). Actual parts
# are often faster or slower than the standard's nominal rate.
DRAMS: Mapping[str, DramKind] = {
    one.name: one
    for one in (
        DramKind(name="lpddr2", channel_bits=32, transfers_per_s=1.066e9, embodied="lpddr2_20nm"),
        DramKind(name="lpddr4", channel_bits=16, transfers_per_s=4.267e9, embodied="lpddr4"),
        DramKind(
            name="lpddr5", channel_bits=16, transfers_per_s=6.4e9, embodied="lpddr4", stand_in=True
        ),
        DramKind(name="ddr4", channel_bits=64, transfers_per_s=3.2e9, embodied="ddr4_10nm"),
        DramKind(
            name="ddr5", channel_bits=64, transfers_per_s=6.4e9, embodied="ddr4_10nm", stand_in=True
        ),
        DramKind(
            name="gddr5", channel_bits=32, transfers_per_s=8e9, embodied="ddr3_30nm", stand_in=True
        ),
        DramKind(
            name="gddr6", channel_bits=32, transfers_per_s=16e9, embodied="ddr4_10nm", stand_in=True
        ),
        DramKind(
            name="hbm2", channel_bits=1024, transfers_per_s=2e9, embodied="ddr4_10nm", stand_in=True
        ),
        DramKind(
            name="hbm2e",
            channel_bits=1024,
            transfers_per_s=3.6e9,
            embodied="ddr4_10nm",
            stand_in=True,
        ),
        DramKind(
            name="hbm3",
            channel_bits=1024,
            transfers_per_s=6.4e9,
            embodied="ddr4_10nm",
            stand_in=True,
        ),
    )
}


def dram_of(name: str) -> DramKind:
    """Return the kind of DRAM with this name.

    Raises:
        SpecError: there is no such kind, or its energy per byte is unknown.
    """
    kind = look_up_row("dram", name, DRAMS)
    if kind.j_per_byte is None:
        raise SpecError(
            f"no energy of {name!r} with a source was found",
            hint=f"it is known for {', '.join(DRAM_J_PER_BYTE)}",
        )
    return kind
