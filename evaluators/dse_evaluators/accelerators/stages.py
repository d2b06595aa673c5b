"""The account in stages: each is worked out once for each combination of what it depends on.

What the array does depends on neither clock, DRAM rate nor voltage; how long that takes does not
depend on the voltage. Designs that are listed together differ in few knobs at a time, so that a
stage sees a few of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np

from dse.core.batch import Batch, Distinct
from dse.core.values import Floats, Ints, Value
from dse_evaluators.accelerators.cost import Charges, Technology, charges
from dse_evaluators.accelerators.full import stalls
from dse_evaluators.accelerators.knobs import KNOBS, Settings, settings
from dse_evaluators.accelerators.products import Network
from dse_evaluators.accelerators.schedule import FLOWS, Flow
from dse_evaluators.accelerators.totals import Layers, Totals

TIMED = KNOBS.keys() - {"voltage"}
LAID_OUT = TIMED - {"clock", "dram_bandwidth"}

_CHUNK = 1 << 15
"""Layers times designs at once: what stays in a core's cache."""

Work = Callable[[Flow, Network, Settings], tuple[Layers, Totals]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """What the array does and what that costs; every field is (n,), a layer's (l, n)."""

    layer_cycles: Floats
    layer_dram_bytes: Floats
    layer_first_bytes: Floats
    cycles: Floats
    """Never waiting."""
    macs: Floats
    dram_bytes: Floats
    sram_bytes: Floats
    weight_bytes: Floats
    macs_j: Floats
    srams_j: Floats
    dram_j: Floats
    area_mm2: Floats

    def spread(self, among: Distinct) -> Laid:
        """The same for all rows that are like these."""
        return Laid(**{one.name: among.spread(getattr(self, one.name)) for one in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What the voltage does not change; every field is (n,)."""

    latency_s: Floats
    charges: Charges
    counts: Mapping[str, Floats]

    def spread(self, among: Distinct) -> Timed:
        """The same for all rows that are like these."""
        charge = self.charges
        return Timed(
            latency_s=among.spread(self.latency_s),
            charges=Charges(
                **{one.name: among.spread(getattr(charge, one.name)) for one in fields(charge)}
            ),
            counts={name: among.spread(values) for name, values in self.counts.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One workload in one technology, with the knobs that are fixed."""

    work: Work
    network: Network
    technology: Technology
    fixed: Mapping[str, Value]

    def timed(self, batch: Batch) -> Timed:
        """How long n designs that can exist take, and what they cost whatever the voltage."""
        among = batch.distinct(LAID_OUT)
        laid = self._laid(batch.take(among.rows))
        knobs = settings(batch, self.fixed)
        stall_cycles = self._stall_cycles(laid, among, knobs, len(batch))
        laid = laid.spread(among)
        cycles = laid.cycles + stall_cycles
        return Timed(
            latency_s=cycles / knobs.clock,
            charges=Charges(
                macs_j=laid.macs_j,
                srams_j=laid.srams_j,
                dram_j=laid.dram_j,
                area_mm2=laid.area_mm2,
            ),
            counts={
                "cycles": cycles,
                "stall_cycles": stall_cycles,
                "utilization": laid.macs / (cycles * knobs.rows * knobs.cols),
                "dram_traffic": laid.dram_bytes,
                "sram_traffic": laid.sram_bytes,
                "model_size": laid.weight_bytes,
            },
        )

    def _laid(self, batch: Batch) -> Laid:
        knobs, size = settings(batch, self.fixed), len(batch)
        flows = np.broadcast_to(knobs.dataflow, (size,))
        found: dict[str, Floats] = {}
        for place, flow in enumerate(FLOWS):
            for rows in self._chunks(np.flatnonzero(flows == place)):
                laid = self._of_flow(flow, knobs.take(rows))
                for one in fields(laid):
                    values = getattr(laid, one.name)
                    whole = found.setdefault(one.name, np.empty((*values.shape[:-1], size)))
                    whole[..., rows] = values
        return Laid(**found)

    def _of_flow(self, flow: Flow, knobs: Settings) -> Laid:
        layers, totals = self.work(flow, self.network, knobs)
        charge = charges(totals, knobs, self.technology)
        buffers = (totals.ifmap, totals.filter, totals.ofmap)
        return Laid(
            layer_cycles=layers.cycles,
            layer_dram_bytes=layers.dram_bytes,
            layer_first_bytes=layers.first_bytes,
            cycles=totals.cycles,
            macs=totals.macs,
            dram_bytes=totals.dram_bytes,
            sram_bytes=sum(
                (one.read_bytes + one.written_bytes for one in buffers), start=np.zeros(1)
            ),
            weight_bytes=totals.weight_bytes,
            macs_j=charge.macs_j,
            srams_j=charge.srams_j,
            dram_j=charge.dram_j,
            area_mm2=charge.area_mm2,
        )

    def _stall_cycles(self, laid: Laid, among: Distinct, knobs: Settings, size: int) -> Floats:
        stall_cycles = np.empty(size)
        for rows in self._chunks(np.arange(size)):
            here = rows if among.place is None else among.place[rows]
            layers = Layers(
                cycles=np.take(laid.layer_cycles, here, axis=-1),
                dram_bytes=np.take(laid.layer_dram_bytes, here, axis=-1),
                first_bytes=np.take(laid.layer_first_bytes, here, axis=-1),
            )
            stall_cycles[rows] = stalls(self.network, layers, knobs.take(rows))
        return stall_cycles

    def _chunks(self, rows: Ints) -> Iterator[Ints]:
        size = max(1, _CHUNK // len(self.network.layers))
        for start in range(0, len(rows), size):
            yield rows[start : start + size]
