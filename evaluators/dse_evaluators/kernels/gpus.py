"""GPU specifications used by the im2col convolution model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse_evaluators.accelerators.devices.devices import figures_from


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpec:
    """Resources of a GPU; names state which are per streaming multiprocessor (SM)."""

    sms: int
    clock: float
    """Hz."""
    macs_per_cycle: float
    """Multiply-accumulates in fp32 per cycle of one SM."""
    l1_bandwidth: float
    """B/s of one SM."""
    l2_bandwidth: float
    """B/s of all SMs together."""
    dram_bandwidth: float
    """B/s."""
    l2_size: float
    """B."""


def _gpu_spec(name: str) -> GpuSpec:
    """Return the specification of a GPU, with MACs per cycle computed from its peak FLOP/s."""
    figures = figures_from("lym-2019")[name]
    sms, clock = int(figures["compute_units"]), figures["clock_hz"]
    return GpuSpec(
        sms=sms,
        clock=clock,
        macs_per_cycle=round(figures["fp32"] / (2 * sms * clock)),
        l1_bandwidth=figures["l1_bytes_per_s"],
        l2_bandwidth=figures["l2_bytes_per_s"],
        dram_bandwidth=figures["dram_bytes_per_s"],
        l2_size=figures["l2_bytes"],
    )


GPUS: Mapping[str, GpuSpec] = {
    "titan-xp": _gpu_spec("titan-xp"),
    "p100": _gpu_spec("p100"),
    "v100": _gpu_spec("v100-sxm2"),
}
