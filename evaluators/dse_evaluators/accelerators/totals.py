"""What a workload asks of the array and of its memories, summed over all layers."""

from __future__ import annotations

from dataclasses import dataclass

from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that the array or DRAM take from a buffer, and put into it."""

    read_bytes: Floats  # (n,)
    written_bytes: Floats  # (n,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A workload on an accelerator; every field is (n,)."""

    cycles: Floats
    stall_cycles: Floats
    macs: Floats
    dram_bytes: Floats
    weight_bytes: Floats
    ifmap: Traffic
    filter: Traffic
    ofmap: Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """What decides how long each layer waits for DRAM; every field is (l, n) or (l, 1)."""

    cycles: Floats
    """Never waiting."""
    dram_bytes: Floats
    first_bytes: Floats
    """What must be there before the array can begin."""
