"""Communication time between the devices of a serving plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from dse_evaluators.clusters.collectives import (
    Collective,
    CollectiveConstants,
    compute_link_share,
    constants_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApexFabric:
    """Links within a node (measured, or of a given latency and rate) and between nodes.

    ``within`` names a fabric of ``collectives.csv``; ``told`` replaces it unless it is None.
    """

    within: str
    between: CollectiveConstants
    told: CollectiveConstants | None
    node_devices: int

    def of(self, collective: Collective, ranks: int, span: int) -> CollectiveConstants:
        """Return a collective's constants among ranks spread over ``span`` adjacent devices."""
        if span > self.node_devices:
            return self.between
        if self.told is not None:
            return self.told
        return constants_of(self.within, collective, ranks)

    def seconds(self, collective: Collective, size_bytes: float, ranks: int, span: int) -> float:
        """Return the time of one collective; 0 with one rank.

        This is the scalar form of :func:`dse_evaluators.clusters.collectives.seconds`.
        """
        if ranks <= 1:
            return 0.0
        latency_s, byte_s, pipelining = _law(self, collective, ranks, span)
        moved_s = byte_s * size_bytes
        return latency_s + moved_s + 2.0 * pipelining * math.sqrt(latency_s * moved_s)


@cache
def _law(
    fabric: ApexFabric, collective: Collective, ranks: int, span: int
) -> tuple[float, float, float]:
    """Return a collective's latency [s], seconds per byte of the array, and pipelining."""
    found = fabric.of(collective, ranks, span)
    byte_s = float(compute_link_share(collective, ranks)) / found.bytes_per_s
    return found.latency_s, byte_s, found.pipelining
