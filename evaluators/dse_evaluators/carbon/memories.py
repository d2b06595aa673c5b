"""Manufacturing emissions per byte of DRAM and flash."""

from __future__ import annotations

from collections.abc import Mapping

from dse.errors import SpecError, nearest

_KG_PER_BYTE = 1e-3 / 1e9
"""Conversion from g/GB to kg/B."""

# g/GB. ACT, ISCA 2022: dram_hynix.yaml and ssd_hynix.yaml of its public tables
# (facebookresearch/ACT, MIT). They have no figures for lpddr5, ddr5, gddr6 or any kind of HBM.
MEMORIES: Mapping[str, float] = {
    "ddr3_50nm": 600.0,
    "ddr3_40nm": 315.0,
    "ddr3_30nm": 230.0,
    "lpddr3_30nm": 201.0,
    "lpddr3_20nm": 184.0,
    "lpddr2_20nm": 159.0,
    "lpddr4": 48.0,
    "ddr4_10nm": 65.0,
    "nand_30nm": 31.0,
    "nand_20nm": 15.0,
    "nand_10nm": 10.0,
    "nand_tlc_1z": 5.6,
    "nand_tlc_v3": 6.3,
}


def memory_kg_per_byte(kind: str) -> float:
    """Return the manufacturing emissions of this kind of memory, in kg/B.

    Raises:
        SpecError: there are no figures for it.
    """
    if kind not in MEMORIES:
        raise SpecError(f"there is no memory {kind!r}", hint=nearest(kind, MEMORIES))
    return MEMORIES[kind] * _KG_PER_BYTE
