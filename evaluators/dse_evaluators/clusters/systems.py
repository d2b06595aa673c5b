"""Table of clusters, and of the networks between their nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.devices.devices import Device, device_of
from dse_evaluators.clusters import fabrics
from dse_evaluators.clusters.collectives import Collective, CollectiveConstants
from dse_evaluators.csv_files.csv_records import read_rows, record_of
from dse_evaluators.fits import Fit, fits_in
from dse_evaluators.readings import look_up_row

FITS = Path(__file__).with_name("networks.fits.json")
"""File of the fitted constants of measured networks; ``networks.csv`` states other constants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterNodeNetwork:
    """Network adapters of a node, with the one-way rates and latencies that software reaches.

    ``latency_s`` is the latency of one step between two nodes, ``message_s`` the gap between two
    messages of one adapter. ``checked`` is ``fitted`` (to measurements), ``scaled`` (from a fitted
    network), ``assumed`` or ``hand-set``.
    """

    name: str
    level: str
    latency_s: float
    message_s: float
    adapters: int
    adapter_bytes_per_s: float
    device_bytes_per_s: float
    """Rate of one device while no other device of its node communicates."""
    message_bytes_per_s: float
    """Rate of one device in point-to-point messages, which are slower than collectives."""
    pipelining: float
    """Pipelining coefficient, as in :class:`collectives.CollectiveConstants`."""
    checked: str
    source: str

    def share(self, busy: Floats | float) -> Floats:
        """Return the bytes/s of each of ``busy`` devices of a node that communicate at once."""
        return np.minimum(self.device_bytes_per_s, self.adapters * self.adapter_bytes_per_s / busy)

    def message_share(self, busy: Floats | float) -> Floats:
        """Return the bytes/s of each of ``busy`` devices of a node that send one message each."""
        return np.minimum(self.message_bytes_per_s, self.share(busy))

    def gap_s(self, busy: Floats | float) -> Floats:
        """Return the gap between a device's messages while ``busy`` devices of its node send."""
        return self.message_s * np.maximum(1.0, np.asarray(busy) / self.adapters)


@cache
def fits() -> Mapping[str, Fit]:
    """Return the fitted constants of each network, with the measurements used."""
    return fits_in(FITS)


@cache
def networks() -> Mapping[str, InterNodeNetwork]:
    """Return the networks of ``networks.csv`` by name."""
    rows = read_rows(Path(__file__).with_name("networks.csv"))
    return {row["network"]: _network(row) for row in rows}


def network_of(name: str) -> InterNodeNetwork:
    """Return the network between nodes with this name.

    Raises:
        SpecError: the name is unknown; the hint is the nearest name.
    """
    return look_up_row("network", name, networks())


def _network(row: Mapping[str, str]) -> InterNodeNetwork:
    like = row["like"] or row["network"]
    fitted = fits()[like].constants if like in fits() else {}
    faster = float(row["faster"] or 1.0)

    def figure(name: str) -> float:
        """Return the constant in the network's row, or else the fitted constant.

        Fitted rates are multiplied by the row's factor ``faster``.
        """
        if row[name] or name not in fitted:
            return float(row[name] or row["device_bytes_per_s"])
        return faster ** name.endswith("per_s") * fitted[name]

    return InterNodeNetwork(
        name=row["network"],
        level=row["level"],
        latency_s=figure("latency_s"),
        message_s=figure("message_s"),
        adapters=int(row["adapters"]),
        adapter_bytes_per_s=figure("adapter_bytes_per_s"),
        device_bytes_per_s=figure("device_bytes_per_s"),
        message_bytes_per_s=figure("message_bytes_per_s"),
        pipelining=figure("pipelining"),
        checked=row["checked"],
        source=row["source"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Cluster of equal nodes; a torus pod counts as one node."""

    name: str
    device: str
    node_devices: int
    fabric: str
    network: InterNodeNetwork
    source: str
    nodes: int = 0
    """Number of nodes; 0: as many as a plan needs."""
    own_fabric: fabrics.UnmeasuredFabric | fabrics.MeasuredFabric | None = field(
        default=None, hash=False
    )
    """Fabric of the user, in place of the one named ``fabric``."""
    own_device: Device | None = field(default=None, compare=False)
    """Device of the user, in place of the one named ``device``."""

    @property
    def sheet(self) -> Device:
        """Data-sheet figures of the system's device."""
        return self.own_device or device_of(self.device)

    @property
    def checked(self) -> tuple[str, str]:
        """Origin of the communication constants within and between nodes, such as ``measured``."""
        if self.own_fabric is not None:
            return self.own_fabric.checked, self.network.checked
        return fabrics.get_check_status(self.fabric), self.network.checked

    def within(self, collective: Collective, ranks: int) -> CollectiveConstants:
        """Return latency, bandwidth and pipelining of a collective among ranks of one node."""
        if self.own_fabric is not None:
            return self.own_fabric.constants(collective, ranks)
        return fabrics.within(self.fabric, collective, ranks)

    def between(self) -> CollectiveConstants:
        """Latency and bandwidth of a message between nodes if every device sends one."""
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
