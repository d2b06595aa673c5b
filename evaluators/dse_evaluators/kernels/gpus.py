"""GPU specifications used by the im2col convolution model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpec:
    """Resources of a GPU; those per streaming multiprocessor (SM) are marked as such."""

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


# SMs, clocks and the bandwidths of L1 and L2: Lym et al., DeLTA, 2019, its table of GPUs, from an
# excerpt in which the names of the bandwidths' rows were cut off: that they are those of L1 and L2
# is an assumption. Multiply-accumulates follow from its GFLOPS. The bandwidth of DRAM and the size
# of L2 are those of NVIDIA's data sheets, recalled from memory.
GPUS: Mapping[str, GpuSpec] = {
    "titan-xp": GpuSpec(
        sms=30,
        clock=1.58e9,
        macs_per_cycle=128,
        l1_bandwidth=92e9,
        l2_bandwidth=1051e9,
        dram_bandwidth=547.6e9,
        l2_size=3 * 2**20,
    ),
    "p100": GpuSpec(
        sms=56,
        clock=1.2e9,
        macs_per_cycle=64,
        l1_bandwidth=38.1e9,
        l2_bandwidth=1382e9,
        dram_bandwidth=732e9,
        l2_size=4 * 2**20,
    ),
    "v100": GpuSpec(
        sms=84,
        clock=1.38e9,
        macs_per_cycle=64,
        l1_bandwidth=94.1e9,
        l2_bandwidth=2167e9,
        dram_bandwidth=900e9,
        l2_size=6 * 2**20,
    ),
}
