"""Table of clusters: device, devices per node, fabric within a node, network between nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse_evaluators.clusters import fabrics
from dse_evaluators.clusters.collectives import Collective, CollectiveConstants
from dse_evaluators.clusters.networks import InterNodeNetwork, network_of
from dse_evaluators.csv_records import read_rows, record_of
from dse_evaluators.readings import look_up_row


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Cluster of equal nodes; a torus pod counts as one node."""

    name: str
    device: str
    node_devices: int
    fabric: str
    network: InterNodeNetwork
    source: str

    @property
    def checked(self) -> tuple[str, str]:
        """Validation status of the communication constants within a node and between nodes."""
        return fabrics.get_check_status(self.fabric), self.network.checked

    def within(self, collective: Collective, ranks: int) -> CollectiveConstants:
        """Return latency, bandwidth and pipelining of a collective among ranks of one node."""
        return fabrics.within(self.fabric, collective, ranks)

    def between(self) -> CollectiveConstants:
        """Return latency and bandwidth of a message between nodes if every device sends one."""
        return CollectiveConstants(
            latency_s=self.network.latency_s,
            bytes_per_s=float(self.network.message_share(self.node_devices)),
            pipelining=0.0,
        )


SYSTEMS: Mapping[str, System] = {
    row["system"]: record_of(row, System, name=row["system"], network=network_of(row["network"]))
    for row in read_rows(Path(__file__).with_name("systems.csv"))
}


def system_of(name: str) -> System:
    """Return the cluster with this name.

    Raises:
        SpecError: the name is unknown; the hint is the nearest name.
    """
    return look_up_row("system", name, SYSTEMS)
