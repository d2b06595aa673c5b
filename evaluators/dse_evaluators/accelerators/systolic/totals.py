"""Cycles, operations and memory traffic of a workload, by layer and summed over all layers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferTraffic:
    """Bytes read from an on-chip buffer and written to it, by the array and by DRAM transfers."""

    read_bytes: Floats = field(default_factory=lambda: np.zeros(1))  # (n,)
    written_bytes: Floats = field(default_factory=lambda: np.zeros(1))  # (n,)

    def plus(self, other: BufferTraffic) -> BufferTraffic:
        """Return the sum of two buffers' traffic."""
        return BufferTraffic(
            read_bytes=self.read_bytes + other.read_bytes,
            written_bytes=self.written_bytes + other.written_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """Traffic between the array, each kind of buffer and DRAM, summed over all cores."""

    ifmap: BufferTraffic
    filter: BufferTraffic
    ofmap: BufferTraffic
    accumulator: BufferTraffic = field(default_factory=BufferTraffic)

    def plus(self, other: Buffers) -> Buffers:
        """Return the sum of two traffics for each buffer."""
        return Buffers(
            ifmap=self.ifmap.plus(other.ifmap),
            filter=self.filter.plus(other.filter),
            ofmap=self.ofmap.plus(other.ofmap),
            accumulator=self.accumulator.plus(other.accumulator),
        )

    def each(self) -> tuple[BufferTraffic, ...]:
        """Return the traffic of the input, filter, output and accumulator buffers, in order."""
        return self.ifmap, self.filter, self.ofmap, self.accumulator


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Cycles, operations and traffic of a workload, over all layers and cores, each (n,)."""

    cycles: Floats
    stall_cycles: Floats
    vector_cycles: Floats
    """Cycles that the vector unit adds to those of the array."""
    weighted_macs: Floats
    """Multiply-accumulates of a weight and an activation."""
    unweighted_macs: Floats
    """Multiply-accumulates of two activations."""
    outputs: Floats
    dram_bytes: Floats
    weight_bytes: Floats
    buffers: Buffers

    @property
    def macs(self) -> Floats:
        """Multiply-accumulates in total, both weight x activation and activation x activation."""
        return self.weighted_macs + self.unweighted_macs


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Cycles and DRAM bytes of l layers, which determine stalls; fields are (l, n) or (l, 1)."""

    cycles: Floats
    """Cycles without stalls on DRAM."""
    vector_bound_cycles: Floats
    """``cycles`` where the vector unit takes longer than the array, else 0; or (1, 1) zero."""
    dram_bytes: Floats
    first_bytes: Floats
    """Bytes that must arrive from DRAM before the array can begin."""
