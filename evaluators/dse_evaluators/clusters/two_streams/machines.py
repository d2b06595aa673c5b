"""Table of cluster nodes, on premises and in public clouds, as configured by MAD-Max's authors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse_evaluators.accelerators.devices.devices import figures_from
from dse_evaluators.readings import look_up_row


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
# with their tool (facebookresearch/ScaleExplorer@562db98): shares of ZionEX were measured on it,
# the clouds use one common set. Their rates of the V100 and the H100 are those of the PCIe cards.
# Links are 25 GB/s each way on NVLink, memory and adapters as rented.
# Prices: unverified, from memory of the vendors' on-demand list prices in US dollars.
MACHINES: Mapping[str, ClusterNode] = {
    name: ClusterNode(
        name=name,
        device=device,
        node_devices=devices,
        flops_per_s=_rates(device),
        memory_bytes=memory * 1e9,
        memory_bytes_per_s=_FIGURES[device]["dram_bytes_per_s"],
        link_bytes_per_s=links / 2.0 * 1e9,
        link_share=link_share,
        network_bytes_per_s=adapters / 2.0 * 1e9,
        price_per_hour=price,
    )
    for (
        name,
        device,
        devices,
        memory,
        links,
        link_share,
        adapters,
        price,
    ) in (
        # links and adapters: GB/s, both directions together
        ("aws-p3", "v100-sxm2", 8, 16, 6 * 50, 0.45, 8 * 0.390625, 3.06),
        ("aws-p3dn", "v100-sxm2", 8, 32, 6 * 50, 0.45, 8 * 1.5625, 3.90),
        ("aws-p4d", "a100-sxm-40gb", 8, 40, 12 * 50, 0.45, 8 * 6.25, 4.10),
        ("aws-p4de", "a100-sxm-80gb", 8, 80, 12 * 50, 0.45, 8 * 6.25, 5.12),
        ("aws-p5", "h100-sxm", 8, 80, 18 * 50, 0.45, 8 * 50, 12.29),
        ("azure-nc-v100", "v100-sxm2", 4, 16, 0.75, 0.62, 4 * 0.75, 3.37),
        ("azure-nd-v100", "v100-sxm2", 8, 32, 6 * 50, 0.45, 8 * 1.5625, 2.75),
        ("azure-nc-a100", "a100-sxm-80gb", 4, 80, 2.5, 0.45, 4 * 2.5, 3.67),
        ("azure-nd-a100", "a100-sxm-40gb", 8, 40, 12 * 50, 0.45, 8 * 25, 3.40),
        ("gcp-v100", "v100-sxm2", 8, 16, 6 * 50, 0.62, 8 * 1.5625, 2.95),
        ("gcp-a2", "a100-sxm-40gb", 8, 40, 12 * 50, 0.45, 8 * 1.5625, 3.67),
        ("gcp-a2-mega", "a100-sxm-40gb", 16, 40, 12 * 50, 0.45, 16 * 0.78125, 3.48),
    )
} | {
    "zionex": ClusterNode(
        name="zionex",
        device="a100-sxm-40gb",
        node_devices=8,
        flops_per_s=_rates("a100-sxm-40gb"),
        memory_bytes=40e9,
        memory_bytes_per_s=_FIGURES["a100-sxm-40gb"]["dram_bytes_per_s"],
        link_bytes_per_s=12 * 25e9,
        link_share=0.6667,
        network_bytes_per_s=8 * 12.5e9,
        network_share=0.56,
        near_share=0.2746,
        measured=True,
    )
}


def machine_of(name: str) -> ClusterNode:
    """Return the type of cluster node with this name.

    Raises:
        SpecError: there is no such machine; the hint gives the nearest name.
    """
    return look_up_row("system", name, MACHINES)
