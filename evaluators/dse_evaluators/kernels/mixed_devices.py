"""Devices for GEMMs with narrow weights: those of the publications, and the device catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse_evaluators.accelerators.devices.devices import DEVICES


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedDevice:
    """Device properties for a GEMM of 16-bit activations and narrow weights."""

    dram_bytes: float
    dram_bytes_per_s: float
    flops_per_s: float
    """Dense fp16 rate; twice that with 2:4 sparsity."""


# NVIDIA's data sheets: the A10's figures were read with MARLIN's, the others are from memory. The
# RTX 3090 accumulates in fp32, as MARLIN does, at half the rate of fp16 accumulation.
_PUBLISHED = {
    "a10": MixedDevice(dram_bytes=24e9, dram_bytes_per_s=600e9, flops_per_s=125e12),
    "rtx-3090": MixedDevice(dram_bytes=24e9, dram_bytes_per_s=936e9, flops_per_s=71e12),
    "rtx-6000-ada": MixedDevice(dram_bytes=48e9, dram_bytes_per_s=960e9, flops_per_s=364.2e12),
    "rtx-a6000": MixedDevice(dram_bytes=48e9, dram_bytes_per_s=768e9, flops_per_s=154.8e12),
}

MIXED_DEVICES: Mapping[str, MixedDevice] = {
    **{
        name: MixedDevice(
            dram_bytes=device.dram_bytes,
            dram_bytes_per_s=device.dram_bytes_per_s,
            flops_per_s=device.flops_per_s["fp16"],
        )
        for name, device in DEVICES.items()
        if "fp16" in device.flops_per_s
    },
    **_PUBLISHED,
}
