"""Roofline times of inference kernels on a device, by number format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from dse.core.values import Floats, Ints, Mask
from dse.errors import SpecError
from dse_evaluators.accelerators.devices import roofline
from dse_evaluators.accelerators.devices.calibrations import DeviceCalibration, calibration_on
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline import KernelWork, RooflineConstants
from dse_evaluators.accelerators.devices.weight_only import (
    VECTOR_ROWS,
    WIDTHS,
    nearest_widths,
    rates_of,
    weight_only_of,
)

PLAIN = "bf16"
"""Format of activations between kernels, attention and the LM head, for any weight format."""

ATTENTION_SHARE = 0.5
"""Share of the dense rate that fused attention reaches: between the 0.35 of FlashAttention-2 on
H100 and the 0.75 of FlashAttention-3 (Shah et al., 2024, abstract); assumed, not fitted."""

_NARROWS_APART = frozenset({"fp8_block"})
"""Formats with a scale per 128 activations, which a separate kernel computes. In other formats the
preceding kernel (norm, activation) writes quantized numbers, so a GEMM launches as in bf16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Roofline model of a device; fields are scalars, or (n,) by each design's number format."""

    constants: RooflineConstants
    flops_per_s: Floats
    operand_bytes: Floats
    stored: Floats
    """Bytes of a weight in memory, over the bytes of a GEMM operand."""
    seen_rows: Floats
    """Maximum number of tokens per GEMM in the calibration data."""
    own: Mask
    """Whether the device was measured in that format."""
    plain: RooflineConstants
    plain_flops_per_s: float
    bytes_per_s: float
    vector: RooflineConstants | None = None
    """Constants of weight-only quantized GEMMs with few rows; ``None`` without such weights."""
    vector_flops_per_s: Floats | float = 0.0
    experts: Engine | None = None
    """Model of the GEMMs of routed experts; ``None``: in the format of other GEMMs."""

    @property
    def routed(self) -> Engine:
        """Roofline model of the GEMMs of routed experts, in their own number format."""
        return self if self.experts is None else self.experts

    @property
    def weight_bytes(self) -> Floats:
        """Bytes of a weight in memory, (n,)."""
        return self.operand_bytes * self.stored

    def product(
        self, m: Floats, k: Floats, n: Floats, *, copies: Floats | float = 1.0
    ) -> KernelWork:
        """Return the operations and bytes of GEMMs of (m, k) activations with (k, n) weights.

        With ``copies`` weight matrices (experts) each row of activations uses one of them, and all
        are read.
        """
        weights = copies * self.stored * (k * n)
        return KernelWork(
            flops=2.0 * m * k * n,
            moved_bytes=self.operand_bytes * (m * k + weights) + 2.0 * m * n,
            chain=k,
            converted=m * k,
        )

    def product_s(self, work: KernelWork) -> Floats:
        """Return the seconds of a GEMM with weights, (n,)."""
        constants, flops_per_s = self.constants, self.flops_per_s
        if self.vector is not None:
            few = work.converted <= VECTOR_ROWS * work.chain  # rows times depth
            constants = _where(few, self.vector, constants)
            flops_per_s = np.where(few, self.vector_flops_per_s, flops_per_s)
        return roofline.total_s(
            work, constants, flops_per_s=flops_per_s, bytes_per_s=self.bytes_per_s
        )

    def attention_s(self, work: KernelWork) -> Floats:
        """Return the seconds of a fused attention kernel, (n,)."""
        shares = replace(self.plain, compute_share=ATTENTION_SHARE, chain_s=0.0)
        return self._plain_s(work, shares)

    def head_s(self, work: KernelWork) -> Floats:
        """Return the seconds of the LM head GEMM, (n,)."""
        return self._plain_s(work, self.plain)

    def passes_s(self, moved_bytes: Floats) -> Floats:
        """Return the seconds in which elementwise kernels move bytes, (n,), without launches."""
        return moved_bytes / (self.plain.memory_share * self.bytes_per_s)

    def _plain_s(self, work: KernelWork, constants: RooflineConstants) -> Floats:
        return roofline.total_s(
            work, constants, flops_per_s=self.plain_flops_per_s, bytes_per_s=self.bytes_per_s
        )


def engine(
    device: Device, formats: Sequence[str], place: Ints, weight_bits: Floats | None = None
) -> Engine:
    """Build the roofline model of a device for n designs, each with its own number format.

    Weights with ``weight_bits`` above 0 are stored and read in these bits, and multiplied in the
    design's format. GEMM kernels that dequantize narrower weights use the constants of the nearest
    measured width. For formats below 16 bits such kernels were not measured: each constant is then
    the worse of that of the dequantizing kernel and that of the plain kernel.

    Args:
        device: the device.
        formats: the number formats that occur, names of ``RECIPES``.
        place: index of each design's format in ``formats``, (n,).
        weight_bits: bits of a stored weight, (n,); 0: the bits of the design's format.

    Raises:
        SpecError: no device was measured in one of the formats, or the data sheet has no rate.
    """
    found = [calibration_on(device, text) for text in formats]
    plain = replace(calibration_on(device, PLAIN).constants, conversion_bytes=0.0)
    engines = [
        _constants(text, one, plain) for text, one in zip(formats, found, strict=True)
    ]  # (f,)

    def spread(values: Sequence[float]) -> Floats:
        return np.array(values, dtype=np.float64)[place]

    operand_bytes = spread([RECIPES[text].operand_bytes for text in formats])
    bits = np.zeros_like(operand_bytes) if weight_bits is None else weight_bits
    usual = Engine(
        constants=RooflineConstants(
            **{
                each.name: spread([getattr(one, each.name) for one in engines])
                for each in fields(RooflineConstants)
            }
        ),
        flops_per_s=spread([rate_of(device, text) for text in formats]),
        operand_bytes=operand_bytes,
        stored=np.where(bits > 0, bits / 8.0 / operand_bytes, 1.0),
        seen_rows=spread([one.ranges[1] for one in found]),
        own=spread([one.own for one in found]) > 0,
        plain=plain,
        plain_flops_per_s=rate_of(device, PLAIN),
        bytes_per_s=device.dram_bytes_per_s,
    )
    widened = (bits > 0) & (bits < 8.0 * operand_bytes)
    return _widening(usual, device, bits, widened) if widened.any() else usual


def _widening(usual: Engine, device: Device, bits: Floats, widened: Mask) -> Engine:
    """Return the model with constants of dequantizing GEMM kernels where ``widened`` is true."""
    nearest = nearest_widths(bits)
    narrow = usual.operand_bytes < RECIPES[PLAIN].operand_bytes
    few = many = usual.constants
    for width in WIDTHS:
        found, rows = weight_only_of(device.name, width), widened & (nearest == width)
        few = _where(rows & ~narrow, found.vector, few)
        many = _where(rows & ~narrow, found.tiles, many)
        few = _where(rows & narrow, _worse(found.vector, usual.constants), few)
        many = _where(rows & narrow, _worse(found.tiles, usual.constants), many)
    vector_flops_per_s = rates_of(device).vector_flops_per_s
    return replace(
        usual,
        constants=many,
        vector=few,
        vector_flops_per_s=np.where(widened, vector_flops_per_s, usual.flops_per_s),
    )


def _where(rows: Mask, then: RooflineConstants, otherwise: RooflineConstants) -> RooflineConstants:
    return RooflineConstants(
        **{
            each.name: np.where(rows, getattr(then, each.name), getattr(otherwise, each.name))
            for each in fields(RooflineConstants)
        }
    )


def _worse(one: RooflineConstants, other: RooflineConstants) -> RooflineConstants:
    """Return roofline constants, each the worse (slower) of two sets of constants."""
    ends = dict.fromkeys(("compute_share", "memory_share", "exponent"), np.minimum)
    return RooflineConstants(
        **{
            each.name: ends.get(each.name, np.maximum)(
                getattr(one, each.name), getattr(other, each.name)
            )
            for each in fields(RooflineConstants)
        }
    )


def rate_of(device: Device, number_format: str) -> float:
    """Return the dense rate [FLOP/s] on the data sheet of a device.

    Raises:
        SpecError: the data sheet has no rate for the format.
    """
    rate = RECIPES[number_format].rate
    if rate not in device.flops_per_s:
        raise SpecError(
            f"{device.name} has no units for {number_format}",
            hint=f"it has {', '.join(device.flops_per_s)}",
        )
    return device.flops_per_s[rate]


def _constants(
    number_format: str, found: DeviceCalibration, plain: RooflineConstants
) -> RooflineConstants:
    if number_format in _NARROWS_APART:
        return found.constants
    return replace(found.constants, launch_s=plain.launch_s, conversion_bytes=0.0)
