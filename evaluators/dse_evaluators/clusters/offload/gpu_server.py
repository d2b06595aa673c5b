"""Server with one GPU: rates, capacities and prices."""

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
    """Rates and capacities of a server with one GPU; the array fields are (n,)."""

    flops_per_s: float
    """Achieved GEMM rate, not that of the data sheet."""
    dram_bytes: float
    """GPU memory that a plan may use."""
    dram_bytes_per_s: float
    pcie_bandwidth: Floats
    """Bytes/s in each direction, full duplex."""
    host_memory: Floats
    adam_rate: Floats
    """Weights per second that the CPU updates."""
    ssds: Floats
    ssd_read_bandwidth: Floats
    ssd_write_bandwidth: Floats
    ssd_capacity: Floats
    ssd_endurance: Floats
    """Bytes that can be written to one disk over its lifetime."""

    @property
    def disks(self) -> Floats:
        """Number of disks, at least 1 to avoid division by zero for plans without disks."""
        return np.maximum(self.ssds, 1.0)

    def storage_s(self, read: Floats, written: Floats) -> Floats:
        """Return the seconds to read and then write data, striped over all disks, (n,).

        Both sizes are in bytes.
        """
        return np.asarray(
            read / (self.disks * self.ssd_read_bandwidth)
            + written / (self.disks * self.ssd_write_bandwidth),
            dtype=np.float64,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrices:
    """Prices of a GPU server's components in US dollars, for comparisons between servers only.

    A GeForce RTX 4090 was announced at 1,599 dollars. The other prices are assumed: a board with a
    server CPU, a byte of registered DDR4 (at 3 dollars per gigabyte), and a 3.84 TB data-centre
    disk.
    """

    gpu: float = 1599.0
    board: float = 4000.0
    memory_per_byte: float = 3.0e-9
    ssd: float = 450.0
    years: float = 4.0
    """Years over which all parts are depreciated, apart from disk wear."""

    @staticmethod
    def of(inputs: Mapping[str, float]) -> NodePrices:
        """Return the prices of a server's components, with defaults for those not given.

        Raises:
            SpecError: a price name is unknown, or a price is out of range.
        """
        known = [one.name for one in fields(NodePrices)]
        for name, price in inputs.items():
            if name not in known:
                raise SpecError(f"there is no price {name!r}", hint=nearest(name, known))
            number(1e-6 if name == "years" else 0.0, 1e12)(name, price)
        return NodePrices(**inputs)

    def node(self, node: OffloadNode) -> Floats:
        """Return the price of a complete server in US dollars, (n,)."""
        return (
            self.gpu + self.board + self.memory_per_byte * node.host_memory + self.ssd * node.ssds
        )

    def held(self, node: OffloadNode, seconds: Floats) -> Floats:
        """Return the depreciation of a server over ``seconds``, in US dollars, (n,)."""
        return self.node(node) * (seconds / (self.years * _YEAR_S))

    def worn(self, node: OffloadNode, written: Floats) -> Floats:
        """Return the share of a disk's price that writing bytes wears out, in dollars, (n,)."""
        return self.ssd * (written / node.ssd_endurance)
