"""Table of cluster nodes, on premises and in public clouds, as configured by MAD-Max's authors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse_evaluators.accelerators.devices.devices import figures_from
from dse_evaluators.csv_records import read_rows, record_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """Kind of cluster node: peak rates of the data sheet, and the share of each that is reached.

    ``flops_per_s`` is keyed by the bytes of a number. ``link_bytes_per_s`` sums all links of a
    device within the node, ``network_bytes_per_s`` all network adapters of the node, both in one
    direction. ``near_share`` is the part of an all-reduce over several nodes that stays within
    nodes. ``device`` is the row of ``devices.csv`` for power and embodied carbon;
    ``price_per_hour`` is in US dollars per device, by default the price of that row.
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
    """Return the authors' dense rates by the bytes of a number; four: TF32 where supported."""
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
