"""Stalls of layers on DRAM, and the bottleneck of the chip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.matrix_products import UniqueLayers
from dse_evaluators.accelerators.systolic.systolic_parameters import Settings
from dse_evaluators.accelerators.systolic.totals import Layers

BOTTLENECKS = ("compute", "vector", "dram")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Cycles in which a systolic array stalls, or is bound by DRAM or vector unit, (n,).

    All fields are sums over the layers of a workload, for n designs.
    """

    stall_cycles: Floats
    """Cycles in which the array waits for DRAM."""
    dram_bound_cycles: Floats
    """Cycles of layers bound by DRAM traffic, and of loading the first words of every layer."""
    vector_bound_cycles: Floats
    """Cycles of the other layers if they are bound by the vector unit."""


def waits(network: UniqueLayers, layers: Layers, knobs: Settings) -> Waits:
    """Compute the cycles in which layers wait for DRAM, whose bandwidth all cores share."""
    cycles_per_byte = knobs.clock / knobs.dram_bandwidth
    traffic = layers.dram_bytes * cycles_per_byte
    late = np.maximum(0.0, traffic - layers.cycles)
    first = layers.first_bytes * cycles_per_byte
    bound = late > 0.0
    return Waits(
        stall_cycles=network.total(late + first),
        dram_bound_cycles=network.total(np.where(bound, traffic, 0.0) + first),
        vector_bound_cycles=np.zeros(1)
        if layers.vector_bound_cycles.shape[0] == 1 < len(network.layers)
        else network.total(np.where(bound, 0.0, layers.vector_bound_cycles)),
    )


def bottleneck(cycles: Floats, waiting: Waits) -> Floats:
    """Return the index in :data:`BOTTLENECKS` of the unit that bounds most of the latency, (n,)."""
    dram, vector = waiting.dram_bound_cycles, waiting.vector_bound_cycles
    compute = cycles - dram - vector
    of_chip = np.where(vector > compute, 1.0, 0.0)
    return np.where(dram > np.maximum(compute, vector), 2.0, of_chip)
