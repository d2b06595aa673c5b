"""One server with one GPU: what it computes, moves and holds, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.readings import number

_YEAR_S = 365.25 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadNode:
    """The GPU's own figures, and what can be chosen beside it, (n,) each."""

    flops_per_s: float
    """That products reach, not the data sheet's."""
    dram_bytes: float
    """That a plan may use."""
    dram_bytes_per_s: float
    pcie_bandwidth: Floats
    """In each direction, both at once."""
    host_memory: Floats
    adam_rate: Floats
    """Weights a second that the CPU updates."""
    ssds: Floats
    ssd_read_bandwidth: Floats
    ssd_write_bandwidth: Floats
    ssd_capacity: Floats
    ssd_endurance: Floats
    """Bytes that can be written to one of them in its life."""

    @property
    def disks(self) -> Floats:
        """At least one, so that plans without disks have numbers, if no meaning."""
        return np.maximum(self.ssds, 1.0)

    def storage_s(self, read: Floats, written: Floats) -> Floats:
        """Striped over all disks, which read and write in turn."""
        return np.asarray(
            read / (self.disks * self.ssd_read_bandwidth)
            + written / (self.disks * self.ssd_write_bandwidth),
            dtype=np.float64,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrices:
    """US dollars of its parts, as good for a comparison of nodes as they were looked up for one.

    A GeForce RTX 4090 was announced at 1,599. The rest is assumed: a board with a server's CPU, a
    gigabyte of registered DDR4, and a disk of 3.84 TB for data centres.
    """

    gpu: float = 1599.0
    board: float = 4000.0
    memory_per_byte: float = 3.0e-9
    ssd: float = 450.0
    years: float = 4.0
    """Over which what does not wear out is written off."""

    @staticmethod
    def of(told: Mapping[str, float]) -> NodePrices:
        """These prices, and the defaults of the others.

        Raises:
            SpecError: there is no such price, or it is negative.
        """
        known = [one.name for one in fields(NodePrices)]
        for name, price in told.items():
            if name not in known:
                raise SpecError(f"there is no price {name!r}", hint=nearest(name, known))
            number(1e-6 if name == "years" else 0.0, 1e12)(name, price)
        return NodePrices(**told)

    def node(self, node: OffloadNode) -> Floats:
        """A whole node, (n,)."""
        return (
            self.gpu + self.board + self.memory_per_byte * node.host_memory + self.ssd * node.ssds
        )

    def held(self, node: OffloadNode, seconds: Floats) -> Floats:
        """The share of its price that falls on so many seconds, (n,)."""
        return self.node(node) * (seconds / (self.years * _YEAR_S))

    def worn(self, node: OffloadNode, written: Floats) -> Floats:
        """The share of a disk's price that so many written bytes use up, (n,)."""
        return self.ssd * (written / node.ssd_endurance)
