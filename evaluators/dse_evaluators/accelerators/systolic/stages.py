"""Systolic cost model in stages, each computed once per distinct combination of its inputs.

Cycles and traffic depend on neither clock, DRAM bandwidth nor voltage; latency does not depend on
the voltage. Designs of a batch often differ in few inputs, so that a stage has far
fewer distinct combinations than there are designs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np

from dse.core.batch import Batch, Distinct
from dse.core.values import Floats, Ints, Value
from dse_evaluators.accelerators.systolic.cost import Charges, Technology, charges
from dse_evaluators.accelerators.systolic.matrix_products import UniqueLayers
from dse_evaluators.accelerators.systolic.schedule import FLOWS, Flow
from dse_evaluators.accelerators.systolic.systolic_parameters import (
    COMBINATION,
    KNOBS,
    Settings,
    settings,
)
from dse_evaluators.accelerators.systolic.totals import Layers, Totals
from dse_evaluators.accelerators.systolic.vector import absent
from dse_evaluators.accelerators.systolic.waiting import Waits, bottleneck, waits

TIMED = (KNOBS.keys() - {"voltage"}) | {COMBINATION}

LAID_OUT = TIMED - {"clock", "dram_bandwidth"}

_CHUNK = 1 << 15
"""Largest number of layers times designs computed at once, so that arrays fit in a core's cache."""

Work = Callable[[Flow, UniqueLayers, Settings], tuple[Layers, Totals]]

SRAM_BYTES = (2.0 * 1024.0, 2.0 * 1024.0**2)
"""Smallest and largest size of the SRAM macros that the SRAM power laws were fitted to."""

WORDS = ("no", "yes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """Cycles, traffic, energies and area of n designs, summed over all layers; every field is (n,).

    This first stage of the model does not depend on clock, DRAM bandwidth or voltage.
    """

    cycles: Floats
    """Cycles without stalls on DRAM."""
    vector_cycles: Floats
    macs: Floats
    dram_bytes: Floats
    sram_bytes: Floats
    weight_bytes: Floats
    macs_j: Floats
    srams_j: Floats
    vectors_j: Floats
    dram_j: Floats
    area_mm2: Floats
    extrapolated: Floats

    def spread(self, among: Distinct) -> Laid:
        """Expand the results of distinct designs to all designs of the batch."""
        return Laid(**{one.name: among.spread(getattr(self, one.name)) for one in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Latency, costs and counts of n designs that do not depend on the voltage; fields are (n,).

    A field that is equal for all designs may be (1,).
    """

    latency_s: Floats
    charges: Charges
    counts: dict[str, Floats]

    def spread(self, among: Distinct) -> Timed:
        """Expand the results of distinct designs to all designs of the batch."""
        charge = self.charges
        return Timed(
            latency_s=among.spread(self.latency_s),
            charges=Charges(
                **{one.name: _spread(among, getattr(charge, one.name)) for one in fields(charge)}
            ),
            counts={name: _spread(among, values) for name, values in self.counts.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SystolicCostModel:
    """Cost model of one workload in one technology, with some inputs fixed for all designs."""

    work: Work
    network: UniqueLayers
    technology: Technology
    fixed: Mapping[str, Value]

    def timed(self, batch: Batch) -> Timed:
        """Compute the latency and the voltage-independent costs of n feasible designs."""
        among = batch.distinct(LAID_OUT)
        layers, laid = self._laid(batch.take(among.rows))
        knobs = settings(batch, self.fixed)
        waiting = self._waits(layers, among, knobs, len(batch))
        laid = laid.spread(among)
        cycles = laid.cycles + waiting.stall_cycles
        vectors_j, vector_cycles = laid.vectors_j, laid.vector_cycles
        if absent(knobs):
            vectors_j = vector_cycles = np.zeros(1)
        return Timed(
            latency_s=cycles / knobs.clock,
            charges=Charges(
                macs_j=laid.macs_j,
                srams_j=laid.srams_j,
                vectors_j=vectors_j,
                dram_j=laid.dram_j,
                area_mm2=laid.area_mm2,
            ),
            counts={
                "cycles": cycles,
                "stall_cycles": waiting.stall_cycles,
                "compute_time": (laid.cycles - vector_cycles) / knobs.clock,
                "vector_time": vector_cycles / knobs.clock,
                "dram_time": waiting.stall_cycles / knobs.clock,
                "bottleneck": bottleneck(cycles, waiting),
                "extrapolated": laid.extrapolated,
                "utilization": laid.macs / (cycles * knobs.rows * knobs.cols * knobs.cores),
                "dram_traffic": laid.dram_bytes,
                "sram_traffic": laid.sram_bytes,
                "model_size": laid.weight_bytes,
            },
        )

    def _laid(self, batch: Batch) -> tuple[Layers, Laid]:
        knobs, size = settings(batch, self.fixed), len(batch)
        flows = np.broadcast_to(knobs.dataflow, (size,))
        of_layers, of_all = dict[str, Floats](), dict[str, Floats]()
        for place, flow in enumerate(FLOWS):
            for rows in self._chunks(np.flatnonzero(flows == place)):
                layers, laid = self._of_flow(flow, knobs.take(rows))
                _put(layers, of_layers, rows, size)
                _put(laid, of_all, rows, size)
        return Layers(**of_layers), Laid(**of_all)

    def _of_flow(self, flow: Flow, knobs: Settings) -> tuple[Layers, Laid]:
        layers, totals = self.work(flow, self.network, knobs)
        charge = charges(totals, knobs, self.technology, weighted=self.network.weighted)
        return layers, Laid(
            cycles=totals.cycles,
            vector_cycles=totals.vector_cycles,
            macs=totals.macs,
            dram_bytes=totals.dram_bytes,
            sram_bytes=sum(
                (one.read_bytes + one.written_bytes for one in totals.buffers.each()),
                start=np.zeros(1),
            ),
            weight_bytes=totals.weight_bytes,
            macs_j=charge.macs_j,
            srams_j=charge.srams_j,
            vectors_j=charge.vectors_j,
            dram_j=charge.dram_j,
            area_mm2=charge.area_mm2,
            extrapolated=flag_extrapolation(knobs),
        )

    def _waits(self, layers: Layers, among: Distinct, knobs: Settings, size: int) -> Waits:
        found = Waits(**{one.name: np.empty(size) for one in fields(Waits)})
        for rows in self._chunks(np.arange(size)):
            here = rows if among.place is None else among.place[rows]
            some = Layers(
                **{
                    one.name: getattr(layers, one.name).take(here, axis=-1)
                    for one in fields(layers)
                }
            )
            waiting = waits(self.network, some, knobs.take(rows))
            for one in fields(Waits):
                getattr(found, one.name)[rows] = getattr(waiting, one.name)
        return found

    def _chunks(self, rows: Ints) -> Iterator[Ints]:
        size = max(1, _CHUNK // len(self.network.layers))
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def _spread(among: Distinct, values: Floats) -> Floats:
    return values if len(values) == 1 else among.spread(values)


def _put(part: Layers | Laid, found: dict[str, Floats], rows: Ints, size: int) -> None:
    """Write the results of the designs with indices ``rows`` into arrays for all designs."""
    for one in fields(part):
        values = getattr(part, one.name)
        whole = found[one.name] = _room(found.get(one.name), (*values.shape[:-1], size))
        whole[..., rows] = values


def _room(whole: Floats | None, shape: tuple[int, ...]) -> Floats:
    """Return an array of at least this shape that contains the values written so far.

    Some chunks of designs have one value for all layers; it is repeated for every layer once
    another chunk has one value per layer.
    """
    if whole is None:
        return np.empty(shape)
    deep = np.broadcast_shapes(whole.shape, shape)
    return whole if whole.shape == deep else np.broadcast_to(whole, deep).copy()


def flag_extrapolation(knobs: Settings) -> Floats:
    """Return 1 where a buffer (of size above 0) is outside the range of the SRAM fit, else 0."""
    smallest, largest = SRAM_BYTES
    outside = np.zeros(1, dtype=bool)
    for size in (knobs.ifmap_sram, knobs.filter_sram, knobs.ofmap_sram, knobs.accumulator_sram):
        outside = outside | ((size != 0.0) & ~((size >= smallest) & (size <= largest)))
    return outside.astype(np.float64)
