"""Effective compute, memory and communication rates of a device in a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dse.core.values import Floats

Collective = Literal["all2all", "allreduce", "allgather", "reducescatter"]
COLLECTIVES: tuple[Collective, ...] = ("all2all", "allreduce", "allgather", "reducescatter")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRates:
    """Effective rates of one device on n clusters; every field is (n,).

    Bandwidths are in one direction: ``near`` within the node, ``far`` between nodes.
    ``near_share`` is the part of an all-reduce over all devices that stays within nodes.
    """

    flops_per_s: Floats
    lookup_bytes_per_s: Floats
    near_bytes_per_s: Floats
    far_bytes_per_s: Floats
    near_share: Floats

    def of(self, collective: Collective, *, outermost: bool) -> Floats:
        """Return the bytes per second of a collective, within a node or spanning nodes, (n,).

        Source:
            Hsia et al., ISCA 2024; an all-gather and a reduce-scatter each move half of the bytes
            of an all-reduce.
        """
        if not outermost:
            reached = self.near_bytes_per_s
        elif collective == "all2all":
            reached = self.far_bytes_per_s
        else:
            near = self.near_share * self.near_bytes_per_s
            reached = near + (1.0 - self.near_share) * self.far_bytes_per_s
        return 2.0 * reached if collective in ("allgather", "reducescatter") else reached
