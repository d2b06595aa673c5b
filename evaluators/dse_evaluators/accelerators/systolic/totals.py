"""Demands of a workload on the array and its memories, summed over all layers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferTraffic:
    """Bytes that the array or DRAM take from a buffer, and put into it."""

    read_bytes: Floats = field(default_factory=lambda: np.zeros(1))  # (n,)
    written_bytes: Floats = field(default_factory=lambda: np.zeros(1))  # (n,)

    def plus(self, other: BufferTraffic) -> BufferTraffic:
        """That of both."""
        return BufferTraffic(
            read_bytes=self.read_bytes + other.read_bytes,
            written_bytes=self.written_bytes + other.written_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """Traffic of each kind of buffer, over all cores."""

    ifmap: BufferTraffic
    filter: BufferTraffic
    ofmap: BufferTraffic
    accumulator: BufferTraffic = field(default_factory=BufferTraffic)

    def plus(self, other: Buffers) -> Buffers:
        """That of both, buffer by buffer."""
        return Buffers(
            ifmap=self.ifmap.plus(other.ifmap),
            filter=self.filter.plus(other.filter),
            ofmap=self.ofmap.plus(other.ofmap),
            accumulator=self.accumulator.plus(other.accumulator),
        )

    def each(self) -> tuple[BufferTraffic, ...]:
        """Inputs, filters, outputs, accumulators."""
        return self.ifmap, self.filter, self.ofmap, self.accumulator


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A workload on an accelerator; every field is (n,)."""

    cycles: Floats
    stall_cycles: Floats
    vector_cycles: Floats
    """By which the vector unit prolongs the array's."""
    weighted_macs: Floats
    unweighted_macs: Floats
    """Of two activations."""
    outputs: Floats
    dram_bytes: Floats
    weight_bytes: Floats
    buffers: Buffers

    @property
    def macs(self) -> Floats:
        """Multiply-accumulates."""
        return self.weighted_macs + self.unweighted_macs


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Inputs to each layer's wait for DRAM; every field is (l, n) or (l, 1)."""

    cycles: Floats
    """Never waiting for DRAM."""
    vector_bound_cycles: Floats
    """The same where the vector unit takes longer than the array, else none; or (1, 1) zero."""
    dram_bytes: Floats
    first_bytes: Floats
    """What must be there before the array can begin."""
