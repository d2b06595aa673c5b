"""Calculon's machines and conventions as inputs of ``clusters.training``.

Rates, links and memories are read from the files of a checkout of Calculon, so that a comparison
with it shows the difference of the two models and not of the data that they were given. A link that
sums in the network carries an array once, where a ring carries it twice: bandwidths of rings are
set to those that take the same time.

Source:
    Isaev et al.: Calculon: a Methodology and Tool for High-Level Codesign of Systems and Large
    Language Models, SC 2023; calculon-ai/calculon@caa4b11, systems/*.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.collectives import CollectiveConstants, compute_link_share
from dse_evaluators.clusters.fabrics import MeasuredFabric
from dse_evaluators.clusters.own_system import system_from
from dse_evaluators.clusters.systems import System
from dse_evaluators.clusters.training.kernels import FORMATS, Chip, Size

Table = Sequence[Sequence[float]]
"""Shares of a peak rate by the least size that reaches them, the largest first."""

FORMAT_NAMES = {"float16": "fp16", "float8": "fp8"}
LARGE_BYTES = 100e6
"""Bytes of transfers whose share of the peak rate stands for all of them."""

_GIB = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class TabledChip(Chip):
    """Device whose kernels reach a share of the peak rates by size, one after the other.

    The time to compute and the time to move data add up.
    """

    compute_shares: Table
    memory_shares: Table

    def product_s(self, m: Size, k: Size, n: Size, copies: Size = 1.0) -> Floats:
        """Return the seconds of one kernel of ``copies`` GEMMs, m x k by k x n."""
        m = np.asarray(m, dtype=np.float64)
        flops = 2.0 * m * k * n * copies
        operands = self.operand_bytes * (m * k + k * n)
        moved_s = self.passes_s(copies * (operands + self.result_bytes * m * n))
        return flops / (share_of(self.compute_shares, flops / 1e9) * self.flops_per_s) + moved_s

    def passes_s(self, moved_bytes: Floats) -> Floats:
        """Return the seconds of a kernel that moves ``moved_bytes``."""
        return moved_bytes / (share_of(self.memory_shares, moved_bytes / 1e6) * self.bytes_per_s)


def share_of(table: Table, size: Floats | float) -> Floats:
    """Return the share of the peak rate at each size, (n,)."""
    least, shares = np.array(table)[::-1].T
    return shares[np.searchsorted(least, size, side="right") - 1]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """System file of Calculon; ``like`` is our system of the same devices."""

    path: Path
    like: str

    @cached_property
    def _figures(self) -> Mapping[str, Any]:  # as JSON has them
        return dict(json.loads(self.path.read_text(encoding="utf-8")))

    @property
    def host_bytes(self) -> float:
        """Bytes of a device's share of its host."""
        return float(self._figures["mem2"]["GiB"] * _GIB)

    @property
    def host_bytes_per_s(self) -> float:
        return self._rate(self._figures["mem2"])

    @property
    def overlap_tax(self) -> float:
        """Share of the compute rate that messages of replicas take."""
        return float(self._figures["networks"][1]["processor_usage"])

    def chips(self, usual: Mapping[str, Chip]) -> dict[str, Chip]:
        """Return the devices' rates by format, in place of our ``usual`` ones."""
        memory = self._figures["mem1"]
        found: dict[str, Chip] = {}
        for name, matrix in self._figures["matrix"].items():
            form = FORMAT_NAMES[name]
            found[form] = TabledChip(
                constants=usual[form].constants,
                flops_per_s=matrix["tflops"] * 1e12,
                bytes_per_s=memory["GBps"] * 1e9,
                operand_bytes=usual[form].operand_bytes,
                compute_shares=matrix["gflops_efficiency"],
                memory_shares=memory["MB_efficiency"],
            )
        # Formats that this project alone tells apart.
        return {form: found.get(form, found["fp16"]) for form in FORMATS if form in usual}

    def system(self, *, tensor: int, data: int, shards: bool) -> System:
        """Return the system as plans of one layout see it: tensor parallelism fills a node.

        Args:
            tensor: tensor-parallel devices.
            data: replicas.
            shards: whether replicas scatter and gather, and do not all-reduce.
        """
        near, far = self._figures["networks"]
        own = {"like": self.like, "device": self._device(), "node_devices": tensor}
        system = system_from(own)
        # An all-reduce also passes the array through the memory, in and out.
        passing_s = 2.0 / self._rate(self._figures["mem1"])
        each_s = _seconds_per_byte(near, "all_reduce", tensor) + passing_s
        constants = CollectiveConstants(
            latency_s=near["latency"],
            bytes_per_s=float(compute_link_share("all_reduce", tensor)) / each_s,
            pipelining=0.0,
        )
        fabric = MeasuredFabric(
            name=self.path.stem,
            measured={("all_reduce", tensor): constants},
            sizes={},
            like=lambda *_: constants,
        )
        collective = "all_gather" if shards else "all_reduce"
        message = far["bandwidth"] * 1e9 * far["efficiency"]
        share = float(compute_link_share(collective, max(data, 2)))
        # A message is never faster than a collective here.
        rate = max(share / _seconds_per_byte(far, collective, data), message)
        network = replace(
            system.network,
            latency_s=far["latency"],
            message_s=0.0,
            adapters=tensor,
            adapter_bytes_per_s=rate,
            device_bytes_per_s=rate,
            message_bytes_per_s=message,
            pipelining=0.0,
        )
        return replace(system, own_fabric=fabric, network=network)

    def _device(self) -> dict[str, str]:
        memory = f"{self._figures['mem1']['GiB']} GiB"
        return {"like": system_from(self.like).device, "memory": memory}

    @staticmethod
    def _rate(memory: Mapping[str, Any]) -> float:
        """Return the bytes/s of a memory in large transfers."""
        share = float(share_of(memory["MB_efficiency"], LARGE_BYTES / 1e6))
        return float(memory["GBps"]) * 1e9 * share


def _seconds_per_byte(network: Mapping[str, Any], collective: str, ranks: int) -> float:
    """Return the seconds that a collective takes for each byte of its array."""
    scale, offset = network["ops"][collective]
    sent = scale * (1.0 + offset / max(ranks, 2))
    return float(sent / (network["bandwidth"] * 1e9 * network["efficiency"]))
