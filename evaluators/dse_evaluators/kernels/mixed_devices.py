"""Devices for GEMMs with weights of fewer than 16 bits, of the catalogue and of publications."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse_evaluators.accelerators.devices.devices import figures_from


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedDevice:
    """Device properties for a GEMM of 16-bit activations and weights of fewer bits."""

    dram_bytes: float
    dram_bytes_per_s: float
    flops_per_s: float
    """Dense fp16 rate; twice that with 2:4 sparsity."""
    has_measured_kernels: bool
    """Whether times of the kernel ``measured`` exist: devices of the catalogue with bf16 units."""


MIXED_DEVICES: Mapping[str, MixedDevice] = {
    name: MixedDevice(
        dram_bytes=figures["dram_bytes"],
        dram_bytes_per_s=figures["dram_bytes_per_s"],
        flops_per_s=figures["fp16"],
        has_measured_kernels=not publication and "bf16" in figures,
    )
    for publication in ("", "frantar-2024")
    for name, figures in figures_from(publication).items()
    if "fp16" in figures
}
