"""Clusters as rows: which devices, how many in a node, and what joins the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dse.errors import SpecError, nearest
from dse_evaluators.clusters.collectives import (
    Collective,
    Constants,
    constants_of,
    measured,
)

_ASSUMED_LATENCY_S = 20e-6
"""Of a message between nodes, software included: assumed, nobody's measurement."""

_HALVES = ("all_gather", "reduce_scatter")

_REALISED = 0.8
"""Of a network's rate on its sheet: assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A cluster of equal nodes.

    ``fabric`` is what was measured within a node. ``network_bytes_per_s`` is one device's share of
    its node's adapters on their sheet, in one direction.
    """

    name: str
    device: str
    node_devices: int
    fabric: str
    network_bytes_per_s: float
    source: str

    def within(self, collective: Collective, ranks: int) -> Constants:
        """The constants of a collective inside one node.

        Where the two halves of an all-reduce were not measured, each has half of its latency.
        """
        if collective in _HALVES and not measured(self.fabric, collective):
            whole = constants_of(self.fabric, "all_reduce", ranks)
            return replace(whole, latency_s=whole.latency_s / 2.0)
        return constants_of(self.fabric, collective, ranks)

    def between(self) -> Constants:
        """The constants of what passes between nodes."""
        return Constants(
            latency_s=_ASSUMED_LATENCY_S,
            bytes_per_s=_REALISED * self.network_bytes_per_s,
            pipelining=0.0,
        )


SYSTEMS: Mapping[str, System] = {
    row.name: row
    for row in (
        System(
            name="a100-dgx",
            device="a100-sxm-80gb",
            node_devices=8,
            fabric="a100-dgx",
            network_bytes_per_s=25e9,
            source="Selene, Narayanan et al., SC 2021, section 5: 8 adapters of 200 Gb/s a node",
        ),
        System(
            name="h100-dgx",
            device="h100-sxm",
            node_devices=8,
            fabric="h100-dgx",
            network_bytes_per_s=50e9,
            source="NVIDIA DGX H100 data sheet (recalled): 8 adapters of 400 Gb/s a node",
        ),
    )
}


def system_of(name: str) -> System:
    """The system of a name.

    Raises:
        SpecError: there is none; the nearest name is told.
    """
    if name not in SYSTEMS:
        raise SpecError(f"system cannot be {name!r}", hint=nearest(name, SYSTEMS))
    return SYSTEMS[name]
