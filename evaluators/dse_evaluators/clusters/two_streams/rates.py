"""Rates of devices that compute, read and communicate, as the streams see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dse.core.values import Floats

Collective = Literal["all2all", "allreduce", "allgather", "reducescatter"]
COLLECTIVES: tuple[Collective, ...] = ("all2all", "allreduce", "allgather", "reducescatter")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRates:
    """Rates of one device on n clusters, in one direction; each (n,).

    ``near_share`` is the part of an all-reduce over all devices that stays within nodes.
    """

    flops_per_s: Floats
    lookup_bytes_per_s: Floats
    near_bytes_per_s: Floats
    far_bytes_per_s: Floats
    near_share: Floats

    def of(self, collective: Collective, *, outermost: bool) -> Floats:
        """Bytes a second of a collective within nodes, or of one that spans them, (n,).

        Source:
            Hsia et al., ISCA 2024; the two halves of an all-reduce move half of its bytes each.
        """
        if not outermost:
            reached = self.near_bytes_per_s
        elif collective == "all2all":
            reached = self.far_bytes_per_s
        else:
            near = self.near_share * self.near_bytes_per_s
            reached = near + (1.0 - self.near_share) * self.far_bytes_per_s
        return 2.0 * reached if collective in ("allgather", "reducescatter") else reached
