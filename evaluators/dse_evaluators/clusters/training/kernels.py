"""Roofline times of training kernels on a device, by GEMM format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.devices import roofline
from dse_evaluators.accelerators.devices.roofline import KernelWork, RooflineConstants

Size = Floats | float

WORD_BYTES = 2.0
"""Bytes of an element that is not a GEMM operand: bf16 or fp16."""

FORMATS = ("bf16", "fp16", "fp8")
OPERAND_BYTES = np.array([2.0, 2.0, 1.0])
"""Bytes of a GEMM operand in each of FORMATS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """Roofline constants of a device in one GEMM format, or in the formats of n plans, (n,)."""

    constants: RooflineConstants
    flops_per_s: Size
    bytes_per_s: float
    operand_bytes: Size = WORD_BYTES
    result_bytes: Size = WORD_BYTES
    """Bytes of an element of a GEMM's result."""
    measured: bool = True

    def product_s(self, m: Size, k: Size, n: Size, copies: Size = 1.0) -> Floats:
        """Return the seconds of one kernel of ``copies`` GEMMs, m x k by k x n."""
        m = np.asarray(m, dtype=np.float64)
        operands = self.operand_bytes * (m * k + k * n)
        work = KernelWork(
            flops=2.0 * m * k * n * copies,
            moved_bytes=copies * (operands + self.result_bytes * m * n),
            chain=np.asarray(k, dtype=np.float64),
            converted=m * k * copies,
        )
        return roofline.times(
            work, self.constants, flops_per_s=self.flops_per_s, bytes_per_s=self.bytes_per_s
        ).total_s

    def passes_s(self, moved_bytes: Floats) -> Floats:
        """Return the seconds of an elementwise kernel that moves ``moved_bytes``."""
        return self.constants.launch_s + moved_bytes / (
            self.constants.memory_share * self.bytes_per_s
        )


def plain(chips: Mapping[str, Chip]) -> Chip:
    """Return the constants of a device's first supported format of FORMATS, 16-bit if possible."""
    return chips[FORMATS[plain_place(chips)]]


def plain_place(chips: Mapping[str, Chip]) -> int:
    """Return the index of the format in FORMATS whose constants :func:`plain` returns."""
    return next(place for place, name in enumerate(FORMATS) if name in chips)


def select_chips(chips: Mapping[str, Chip], place: Floats, result_bytes: Floats) -> Chip:
    """Return the device's constants in each plan's format.

    Args:
        chips: constants by format.
        place: index into FORMATS, (n,).
        result_bytes: bytes of an element of a GEMM's result, (n,).
    """
    usual, at = plain(chips), place.astype(np.intp)
    if at.size and (at == at[0]).all():
        return replace(chips.get(FORMATS[at[0]], usual), result_bytes=result_bytes)
    each = [chips.get(name, usual) for name in FORMATS]
    constants = {
        one.name: np.array([getattr(chip.constants, one.name) for chip in each])[at]
        for one in fields(RooflineConstants)
    }
    return Chip(
        constants=RooflineConstants(**constants),
        flops_per_s=np.array([chip.flops_per_s for chip in each])[at],
        bytes_per_s=usual.bytes_per_s,
        operand_bytes=OPERAND_BYTES[at],
        result_bytes=result_bytes,
    )
