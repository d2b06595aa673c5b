"""Collective and message times between the devices that serve a model, in a node and between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from dse.core.values import Floats, Mask
from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import Device, device_of
from dse_evaluators.clusters.algorithms import ALGORITHMS, Group
from dse_evaluators.clusters.collectives import (
    Collective,
    CollectiveConstants,
    ConstantColumns,
    constants_of,
    seconds,
)
from dse_evaluators.clusters.fabrics import MeasuredFabric, is_measured
from dse_evaluators.clusters.own_system import device_from, system_from
from dse_evaluators.clusters.systems import SYSTEMS, InterNodeNetwork, System, system_of


class UsualDevice(str):
    """Name of a default device, which a system that the user names may replace."""

    __slots__ = ()


USUAL_DEVICE = UsualDevice("h100-sxm")
"""Device where neither a device nor a system is named."""

NODE_DEVICES = 8
"""Devices per node where no system is named; no larger node was measured."""

_MEASURED: Mapping[str, str] = {
    "a100-sxm-80gb": "a100-dgx",
    "h100-sxm": "h100-nccl",
    "h200-sxm": "h200-nccl",
}

_NETWORK = "h100-dgx"
"""System whose inter-node network is used for every device: 400 Gb/s per device."""

_BORROWED: Mapping[str, str] = dict.fromkeys(("b200-sxm", "gb200", "b300-sxm", "gb300"), "h200-sxm")
"""Unmeasured devices, with the device whose fabric is used, scaled to their own link rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFabric:
    """Fabric within a node: the measured fabric ``name``, its bandwidth times ``rate``.

    With a ``system``, nodes, fabric and network are those of that system.
    """

    name: str
    rate: float
    system: System | None = None

    @property
    def node_devices(self) -> int:
        """Number of devices of a node."""
        return NODE_DEVICES if self.system is None else self.system.node_devices

    @property
    def most_devices(self) -> float:
        """Number of devices of the system; infinite if it is not limited."""
        nodes = 0 if self.system is None else self.system.nodes
        return float(nodes * self.node_devices) if nodes else float("inf")

    @property
    def borrowed(self) -> bool:
        """Whether the fabric's constants were not measured on this device."""
        if self.system is not None:
            return self.system.checked[0] != "measured"
        return self.rate != 1.0

    @property
    def exchanges(self) -> bool:
        """Whether an all-to-all was measured on this fabric, or on the fabric it is ``like``."""
        own = None if self.system is None else self.system.own_fabric
        if own is not None:
            return isinstance(own, MeasuredFabric) and own.has_measurement("all_to_all")
        return is_measured(self.name, "all_to_all")

    @property
    def network(self) -> InterNodeNetwork:
        """Network between nodes."""
        return (system_of(_NETWORK) if self.system is None else self.system).network

    def count_nodes(self, ranks: Floats) -> Floats:
        """Return the number of nodes that ``ranks`` devices fill, (n,)."""
        return np.maximum(np.ceil(ranks / self.node_devices), 1.0)

    def sum_s(self, size_bytes: Floats, ranks: Floats) -> Floats:
        """Return the seconds of an all-reduce of ``size_bytes`` over ``ranks``, (n,).

        The time is 0 for a single rank. Over several nodes the faster of ring and trees is used.
        """
        most = float(np.max(ranks, initial=1.0))
        if most <= self.node_devices:
            return seconds("all_reduce", size_bytes, ranks, _sums(self, int(most)).take(ranks))
        found = np.zeros(np.broadcast_shapes(np.shape(size_bytes), np.shape(ranks)))
        within = ranks <= self.node_devices
        found[within] = self.sum_s(size_bytes[within], ranks[within])
        for count in np.unique(ranks[~within]).tolist():
            rows = ranks == count
            found[rows] = self._sum_between_s(size_bytes[rows], count)
        return found

    def _sum_between_s(self, size_bytes: Floats, ranks: float) -> Floats:
        """Return the seconds of an all-reduce over whole nodes, (n,).

        Source:
            :mod:`dse_evaluators.clusters.algorithms`, ``auto``: NCCL's choice of algorithm.
        """
        near = self._constants("all_reduce", self.node_devices)
        inside = np.full_like(size_bytes, self.node_devices)
        group = Group(
            inside=inside,
            nodes=ranks / inside,
            near_latency_s=np.full_like(size_bytes, near.latency_s),
            near_bytes_per_s=np.full_like(size_bytes, near.bytes_per_s),
            far_latency_s=np.full_like(size_bytes, self.network.latency_s),
            far_bytes_per_s=self.network.share(inside),
            gap_s=self.network.gap_s(inside),
            far_pipelining=self.network.pipelining,
        )
        return ALGORITHMS["auto"]("all_reduce", size_bytes, group).total_s

    def exchange_s(
        self,
        size_bytes: Floats,
        ranks: Floats,
        *,
        crossing: Floats | None = None,
        forwarded: Mask | None = None,
    ) -> Floats:
        """Return the seconds of an all-to-all of ``size_bytes`` over ``ranks``, (n,).

        Without a measurement the all-to-all is modelled as consecutive point-to-point messages.
        Over several nodes, messages within and between nodes overlap; the longer transfer counts,
        after the latency of both. ``size_bytes`` are then those that a device receives, from all
        nodes.

        Args:
            size_bytes: bytes that each device sends, including those to itself, (n,).
            ranks: number of devices, (n,).
            crossing: bytes of each device that cross to other nodes, (n,); by default all with a
                destination on another node.
            forwarded: whether bytes that cross are forwarded within the other node, (n,).

        Source:
            The latency-bandwidth law of :mod:`dse_evaluators.clusters.collectives` at each level;
            messages without gaps, as devices post them: Zhao et al.: DeepEP, 2025.
        """
        found = np.zeros(np.broadcast_shapes(np.shape(size_bytes), np.shape(ranks)))
        for count in np.unique(ranks).tolist():
            rows = np.flatnonzero(ranks == count)
            size = size_bytes[rows]
            if count > self.node_devices:
                inside = self.node_devices / count
                far = (1.0 - inside) * size if crossing is None else crossing[rows]
                near = inside if forwarded is None else np.where(forwarded[rows], 1.0, inside)
                found[rows] = self._exchange_between_s(near * size, far)
            elif count > 1:
                found[rows] = seconds("all_to_all", size, count, self._exchange(int(count)))
        return found

    def _exchange_between_s(self, near_bytes: Floats, far_bytes: Floats) -> Floats:
        """Return the seconds of an all-to-all with bytes within and between nodes, (n,)."""
        near, network, count = self._exchange(self.node_devices), self.network, self.node_devices
        far = CollectiveConstants(
            latency_s=network.latency_s,
            bytes_per_s=float(network.share(count)),
            pipelining=network.pipelining,
        )
        near_s = seconds("all_to_all", near_bytes, count, near) - near.latency_s
        far_s = seconds("send_recv", far_bytes, 2, far) - far.latency_s
        return near.latency_s + far.latency_s + np.maximum(near_s, far_s)

    def pass_s(self, size_bytes: Floats, stages: Floats | float, devices: Floats | float) -> Floats:
        """Return the seconds of sending ``size_bytes`` from each pipeline stage to the next, (n,).

        Messages cross nodes where ``stages * devices`` exceeds the devices of a node.
        """
        if np.all(stages == 1):
            return np.zeros_like(size_bytes)
        far = seconds("send_recv", size_bytes, 2, self._between())
        near = np.asarray(stages) * devices <= self.node_devices
        return np.where(stages > 1, stages * np.where(near, self.send_s(size_bytes), far), 0.0)

    def hand_over_s(self, size_bytes: Floats, near: Mask) -> Floats:
        """Return the seconds of sending a KV cache from one device to another, (n,).

        All devices of a node send at the same time; ``near`` is true where both are in one node.
        """
        far_s = seconds("send_recv", size_bytes, 2, self._between())
        return np.where(near, self.send_s(size_bytes), far_s)

    def send_s(self, size_bytes: Floats) -> Floats:
        """Return the seconds of one point-to-point message within the node, (n,)."""
        return seconds("send_recv", size_bytes, 2, self._constants("send_recv", 2))

    def _between(self) -> CollectiveConstants:
        return (system_of(_NETWORK) if self.system is None else self.system).between()

    def _exchange(self, ranks: int) -> CollectiveConstants:
        if self.exchanges:
            return self._constants("all_to_all", ranks)
        one = self._constants("send_recv", 2)
        return replace(one, latency_s=(ranks - 1) * one.latency_s)

    def _constants(self, collective: Collective, ranks: int) -> CollectiveConstants:
        if self.system is not None:
            return self.system.within(collective, ranks)
        known = constants_of(self.name, collective, ranks)
        return replace(known, bytes_per_s=known.bytes_per_s * self.rate)


@cache
def _sums(fabric: ServingFabric, most: int) -> ConstantColumns:
    """Return the constants of all-reduces over 0 to ``most`` devices of a node."""
    return ConstantColumns.by_ranks(
        [fabric._constants("all_reduce", ranks) for ranks in range(2, most + 1)]  # noqa: SLF001
    )


JOINED = (*_MEASURED, *_BORROWED)
"""Names of the devices with a known fabric."""


def fabric_of_system(system: System) -> ServingFabric:
    """Return the fabric within the nodes of a system."""
    return ServingFabric(name=system.fabric, rate=1.0, system=system)


def devices_to_serve(system: object, device: object) -> dict[str, tuple[Device, ServingFabric]]:
    """Return devices with their fabrics, by name, from the option ``system`` or ``device``.

    Args:
        system: name of a system, the path of its file, or a mapping with ``like``; ``None`` if the
            device is named instead.
        device: name of a device, the path of its file, or a mapping with ``like``; ``None`` means
            every device with a known fabric.

    Raises:
        SpecError: a name is unknown, no fabric is known for the device, or both options are given.
    """
    if system is not None:
        found = system_from(system)
        if not isinstance(device, UsualDevice):
            problem = f"the system {found.name} has a device of its own, {found.device}"
            raise SpecError(problem, hint="leave device out", part=["device"])
        return {found.device: (_checked(found.sheet), fabric_of_system(found))}
    if device is None:
        return {name: (device_of(name), fabric_of(name)) for name in JOINED}
    sheet = _checked(device_from(device))
    return {sheet.name: (sheet, fabric_of(sheet.name))}


def _checked(sheet: Device) -> Device:
    """Return a device of which all figures that serving needs are known.

    Raises:
        SpecError: the device has no known power limit, or no 16-bit rate for attention.
    """
    if sheet.power_limit_w is None:
        hint = f"device: {{like: {sheet.name}, power_limit: 300 W}}"
        raise SpecError(f"the power limit of {sheet.name} is unknown", hint=hint)
    if "bf16" not in sheet.flops_per_s:
        hint = f"it has {', '.join(sheet.flops_per_s)}"
        raise SpecError(f"{sheet.name} has no rate in bf16, in which attention runs", hint=hint)
    return sheet


def fabric_of(device: str) -> ServingFabric:
    """Return the fabric that connects devices of this kind within a node.

    Raises:
        SpecError: no fabric is known for the device.
    """
    like = _BORROWED.get(device, device)
    if like not in _MEASURED:
        hosts = [name for name, one in SYSTEMS.items() if one.device == device]
        hint = f"system: {hosts[0]}, in place of device" if hosts else nearest(device, JOINED)
        raise SpecError(f"no measured fabric for device {device}", hint=hint)
    own, measured = device_of(device).link_bytes_per_s, device_of(like).link_bytes_per_s
    rate = own / measured if own is not None and measured is not None else 1.0
    return ServingFabric(name=_MEASURED[like], rate=rate)
