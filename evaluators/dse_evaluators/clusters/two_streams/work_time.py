"""Duration of each computation and communication of an iteration, on n clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.two_streams.layer_units import TwoStreamsModel, Unit
from dse_evaluators.clusters.two_streams.machines import ClusterRates, Collective
from dse_evaluators.clusters.two_streams.order import Role, StreamWork
from dse_evaluators.clusters.two_streams.strategies import ParallelLayout

MOVES: Mapping[Role, Collective] = {
    "exchange": "all2all",
    "dispatch": "all2all",
    "gather": "allgather",
    "scatter": "reducescatter",
    "sum_gradients": "allreduce",
    "sum_activations": "allreduce",
    "sum_lookups": "allreduce",
}
"""Collective of each communication role."""

_WAY: Mapping[Role, str] = {
    "exchange": "mp",
    "dispatch": "tp",
    "gather": "fsdp",
    "scatter": "fsdp",
    "sum_gradients": "ddp",
    "sum_activations": "tp",
    "sum_lookups": "ddp",
}
"""Level of a parallel layout to which each communication role belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoStreamsJob:
    """Model with its parallel layouts on n clusters; every array is (n,).

    With ``sharded_sums`` a device reduces only the gradients of its own weight shard; without it,
    complete layers are reduced where sharding is the inner level, as in the authors' tool.
    """

    model: TwoStreamsModel
    dense: ParallelLayout
    embedding: ParallelLayout
    rates: ClusterRates
    global_batch: Floats
    sharded_sums: bool = False

    @property
    def samples(self) -> Floats:
        """Samples of one data-parallel copy of the layers per iteration, (n,)."""
        return self.global_batch / self.dense.copies

    @property
    def lookup_bytes(self) -> Floats:
        """Bytes that one device reads from its embedding tables per iteration, (n,)."""
        samples = self.global_batch / self.embedding.copies
        return self.model.lookup_bytes * samples / self.embedding.shards

    def work_s(self, work: StreamWork) -> Floats:
        """Return the seconds of one computation, table lookup or collective, (n,).

        Source:
            Hsia et al., ISCA 2024, section 4, and the authors' tool (ScaleExplorer, 2024).
        """
        if work.unit is None:
            return self._tables_s(work.role)
        if work.role in ("forward", "backward"):
            operations = work.unit.operations * self.samples / self.dense.degree("tp")
            forward_s = operations / self.rates.flops_per_s
            return forward_s if work.role == "forward" else 2.0 * forward_s
        return self._moved_s(work.role, self.dense, self._moved_bytes(work.role, work.unit))

    def _tables_s(self, role: Role) -> Floats:
        if role == "lookup":
            return self.lookup_bytes / self.rates.lookup_bytes_per_s
        size = self.lookup_bytes
        if role == "exchange":
            size = 2.0 * (size / self.embedding.degree("mp"))
        return self._moved_s(role, self.embedding, size)

    def _moved_bytes(self, role: Role, unit: Unit) -> Floats:
        """Return the bytes that one device holds of a unit's collective when it ends, (n,)."""
        if role in ("dispatch", "sum_activations"):
            experts = unit.experts if role == "dispatch" else 1
            return self.samples * (unit.outputs * self.model.weight_bytes / experts)
        weights = unit.weights * self.model.weight_bytes
        if role == "sum_gradients":
            kept = self.dense.shards if self.sharded_sums else self.dense.shards_beyond("ddp")
            return weights / kept
        return weights / (self.dense.shards / self.dense.degree("fsdp"))

    def _moved_s(self, role: Role, layout: ParallelLayout, size_bytes: Floats) -> Floats:
        """Return the seconds of a collective, (n,); 0 if its level has a single device."""
        way = _WAY[role]
        bytes_per_s = self.rates.of(MOVES[role], outermost=layout.outermost(way))
        return np.where(layout.degree(way) > 1, size_bytes / bytes_per_s, 0.0)
