"""Table of cluster nodes, on premises and in public clouds, as configured by MAD-Max's authors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


_A100 = {4: 156e12, 2: 312e12}  # four bytes: TF32 where supported
_V100 = {4: 14e12, 2: 112e12}
_H100 = {4: 378e12, 2: 756e12}  # the authors use the PCIe card's rates, also for its memory

_A100_S, _V100_S, _H100_S = 1555e9, 900e9, 2000e9

# Every figure except the prices is from the configurations that Hsia et al., ISCA 2024, published
# with their tool (facebookresearch/ScaleExplorer@562db98): shares of ZionEX were measured on it,
# the clouds use one common set. Links are 25 GB/s each way on NVLink, adapters as rented.
# Prices: on-demand list prices of the vendors in US dollars, quoted from memory.
MACHINES: Mapping[str, ClusterNode] = {
    name: ClusterNode(
        name=name,
        device=device,
        node_devices=devices,
        flops_per_s=rates,
        memory_bytes=memory * 1e9,
        memory_bytes_per_s=memory_bytes_per_s,
        link_bytes_per_s=links / 2.0 * 1e9,
        link_share=link_share,
        network_bytes_per_s=adapters / 2.0 * 1e9,
        price_per_hour=price,
    )
    for (
        name,
        device,
        devices,
        rates,
        memory,
        memory_bytes_per_s,
        links,
        link_share,
        adapters,
        price,
    ) in (
        # links and adapters: GB/s, both directions together
        ("aws-p3", "v100-sxm2", 8, _V100, 16, _V100_S, 6 * 50, 0.45, 8 * 0.390625, 3.06),
        ("aws-p3dn", "v100-sxm2", 8, _V100, 32, _V100_S, 6 * 50, 0.45, 8 * 1.5625, 3.90),
        ("aws-p4d", "a100-sxm-40gb", 8, _A100, 40, _A100_S, 12 * 50, 0.45, 8 * 6.25, 4.10),
        ("aws-p4de", "a100-sxm-80gb", 8, _A100, 80, _A100_S, 12 * 50, 0.45, 8 * 6.25, 5.12),
        ("aws-p5", "h100-sxm", 8, _H100, 80, _H100_S, 18 * 50, 0.45, 8 * 50, 12.29),
        ("azure-nc-v100", "v100-sxm2", 4, _V100, 16, _V100_S, 0.75, 0.62, 4 * 0.75, 3.37),
        ("azure-nd-v100", "v100-sxm2", 8, _V100, 32, _V100_S, 6 * 50, 0.45, 8 * 1.5625, 2.75),
        ("azure-nc-a100", "a100-sxm-80gb", 4, _A100, 80, _A100_S, 2.5, 0.45, 4 * 2.5, 3.67),
        ("azure-nd-a100", "a100-sxm-40gb", 8, _A100, 40, _A100_S, 12 * 50, 0.45, 8 * 25, 3.40),
        ("gcp-v100", "v100-sxm2", 8, _V100, 16, _V100_S, 6 * 50, 0.62, 8 * 1.5625, 2.95),
        ("gcp-a2", "a100-sxm-40gb", 8, _A100, 40, _A100_S, 12 * 50, 0.45, 8 * 1.5625, 3.67),
        ("gcp-a2-mega", "a100-sxm-40gb", 16, _A100, 40, _A100_S, 12 * 50, 0.45, 16 * 0.78125, 3.48),
    )
} | {
    "zionex": ClusterNode(
        name="zionex",
        device="a100-sxm-40gb",
        node_devices=8,
        flops_per_s=_A100,
        memory_bytes=40e9,
        memory_bytes_per_s=_A100_S,
        link_bytes_per_s=12 * 25e9,
        link_share=0.6667,
        network_bytes_per_s=8 * 12.5e9,
        network_share=0.56,
        near_share=0.2746,
        measured=True,
    )
}


def machine_of(name: str) -> ClusterNode:
    """Return the machine with this name.

    Raises:
        SpecError: there is no such machine; the hint gives the nearest name.
    """
    return look_up_row("system", name, MACHINES)
