"""Cluster nodes as configured by MAD-Max's authors: their table, effective rates and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Value
from dse_evaluators.accelerators.devices.devices import device_of, figures_from
from dse_evaluators.clusters.upkeep import Upkeep
from dse_evaluators.csv_files.csv_records import read_rows, record_of

Collective = Literal["all2all", "allreduce", "allgather", "reducescatter"]

COLLECTIVES: tuple[Collective, ...] = ("all2all", "allreduce", "allgather", "reducescatter")

_ONE = np.ones(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """Type of cluster node: data-sheet peak rates, and the fraction of each that is achieved.

    ``flops_per_s`` is keyed by the bytes per number. ``link_bytes_per_s`` sums all links of a
    device within the node, ``network_bytes_per_s`` all network adapters of the node, both in one
    direction. ``near_share`` is the fraction of an all-reduce over several nodes that stays within
    nodes. ``device`` names the device of ``devices.csv`` whose power and embodied carbon apply;
    ``price_per_hour`` is in US dollars per device, by default the price listed for that device.
    """

    name: str
    device: str
    node_devices: int
    flops_per_s: Mapping[int, float]
    memory_bytes: float
    memory_bytes_per_s: float
    link_bytes_per_s: float
    link_share: float
    network_bytes_per_s: float
    network_share: float = 0.62
    near_share: float = 0.1465
    flops_share: float = 0.705
    memory_share: float = 0.836
    price_per_hour: float | None = None
    measured: bool = False
    """Whether the shares were measured on this machine."""

    @property
    def has_a100(self) -> bool:
        return self.device.startswith("a100")


_FIGURES = figures_from("hsia-2024")


def _rates(device: str) -> Mapping[int, float]:
    """Return the authors' dense FLOP/s by bytes per number; for four, TF32 where supported."""
    figures = _FIGURES[device]
    return {4: figures["tf32" if "tf32" in figures else "fp32"], 2: figures["fp16"]}


# Every figure except the prices is from the configurations that Hsia et al., ISCA 2024, published
# with their tool: shares of ZionEX were measured on it, the clouds use one common set. Their rates
# of the V100 and the H100 are those of the PCIe cards. Links are 25 GB/s each way on NVLink.
MACHINES: Mapping[str, ClusterNode] = {
    row["name"]: record_of(
        row,
        ClusterNode,
        flops_per_s=_rates(row["device"]),
        memory_bytes_per_s=_FIGURES[row["device"]]["dram_bytes_per_s"],
    )
    for row in read_rows(Path(__file__).with_name("machines.csv"))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRates:
    """Effective rates of one device on n clusters; every field is (n,).

    Bandwidths are in one direction: ``near`` within the node, ``far`` between nodes. ``near_share``
    is the fraction of an all-reduce over all devices that stays within nodes.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bills:
    """Power, price and carbon of a device per second, by the name of its cluster node type."""

    watts: Mapping[Value, float]
    """Power limit of a device [W]."""
    dollars: Mapping[Value, float]
    """US dollars per device and second."""
    made_kg: Mapping[Value, float]
    """Embodied carbon per device and second [kg]."""
    kg_per_j: float
    """Operational carbon per joule of a device [kg]."""

    @staticmethod
    def of(*, price_per_hour: float | None, grid: str, pue: float) -> Bills:
        """Build the costs of a device per second, by node type.

        A price of ``None`` stands for the listed price of each node type.

        Raises:
            SpecError: there is no such grid, or a number is out of range.
        """

        def upkeep(machine: ClusterNode) -> Upkeep:
            own = machine.price_per_hour if price_per_hour is None else price_per_hour
            return Upkeep(device=machine.device, price_per_hour=own, grid=grid, pue=pue)

        held = {name: upkeep(machine) for name, machine in MACHINES.items()}
        return Bills(
            watts={n: device_of(one.device).power_limit_w or np.nan for n, one in MACHINES.items()},
            dollars={name: float(one.dollars(_ONE)[0]) for name, one in held.items()},
            made_kg={name: float(one.embodied_share_kg(_ONE)[0]) for name, one in held.items()},
            # The grid and the PUE are the same for all machines, so any machine will do.
            kg_per_j=float(held["zionex"].operational_kg(_ONE)[0]),
        )

    def per_sample(self, batch: Batch, held_s: Floats, drawn_s: Floats) -> dict[str, Floats]:
        """Return the energy, cost and carbon of a sample, (n,) each.

        Args:
            batch: designs, with their ``system``.
            held_s: device-seconds per sample, (n,).
            drawn_s: equivalent device-seconds at full power per sample, (n,).
        """
        energy_j = drawn_s * batch.lookup("system", self.watts)
        made_kg = held_s * batch.lookup("system", self.made_kg)
        return {
            "energy_per_sample": energy_j,
            "cost_per_sample": held_s * batch.lookup("system", self.dollars),
            "carbon_per_sample": energy_j * self.kg_per_j + made_kg,
        }
