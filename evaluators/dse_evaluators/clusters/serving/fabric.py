"""Links between the devices that share one copy of a served model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.collectives import (
    Collective,
    CollectiveConstants,
    constants_of,
    has_measurement,
    seconds,
)
from dse_evaluators.clusters.systems import system_of

NODE_DEVICES = 8
"""Devices that one fabric joins; nobody measured more within a node."""

_MEASURED: Mapping[str, str] = {
    "a100-sxm-80gb": "a100-dgx",
    "h100-sxm": "h100-nccl",
    "h200-sxm": "h200-nccl",
}

_NETWORK = "h100-dgx"
"""The system whose network joins the nodes of every device: 400 Gb/s for each."""

_BORROWED: Mapping[str, str] = dict.fromkeys(("b200-sxm", "gb200", "b300-sxm", "gb300"), "h200-sxm")
"""Nobody's measurement: the fabric of another device, at the rate of its own links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFabric:
    """Links within a node, ``rate`` times as fast as when they were measured."""

    name: str
    rate: float

    @property
    def borrowed(self) -> bool:
        """True if it was measured on another device."""
        return self.rate != 1.0

    @property
    def exchanges(self) -> bool:
        """True if somebody measured how its ranks exchange parts."""
        return has_measurement(self.name, "all_to_all")

    def sum_s(self, size_bytes: Floats, ranks: Floats) -> Floats:
        """The time of an all-reduce, (n,); none among one rank."""
        found = np.zeros(np.broadcast_shapes(np.shape(size_bytes), np.shape(ranks)))
        for count in np.unique(ranks).tolist():
            if count > 1:
                rows = ranks == count
                constants = self._constants("all_reduce", int(count))
                found[rows] = seconds("all_reduce", size_bytes[rows], count, constants)
        return found

    def exchange_s(self, size_bytes: Floats, ranks: Floats) -> Floats:
        """Return the time in which each rank sends all others its part of ``size_bytes``.

        The result is (n,).

        Where nobody measured it, as messages one after the other.
        """
        found = np.zeros(np.broadcast_shapes(np.shape(size_bytes), np.shape(ranks)))
        for count in np.unique(ranks).tolist():
            if count > 1:
                rows = ranks == count
                constants = self._exchange(int(count))
                found[rows] = seconds("all_to_all", size_bytes[rows], count, constants)
        return found

    def pass_s(self, size_bytes: Floats, stages: Floats | float, devices: Floats | float) -> Floats:
        """The time in which a stream of so many bytes goes from each stage to the next, (n,).

        Between nodes where the devices of all stages are more than a node has.
        """
        if np.all(stages == 1):
            return np.zeros_like(size_bytes)
        far = seconds("send_recv", size_bytes, 2, system_of(_NETWORK).between())
        near = np.asarray(stages) * devices <= NODE_DEVICES
        return np.where(stages > 1, stages * np.where(near, self.send_s(size_bytes), far), 0.0)

    def send_s(self, size_bytes: Floats) -> Floats:
        """The time of one message."""
        return seconds("send_recv", size_bytes, 2, self._constants("send_recv", 2))

    def _exchange(self, ranks: int) -> CollectiveConstants:
        if self.exchanges:
            return self._constants("all_to_all", ranks)
        one = self._constants("send_recv", 2)
        return replace(one, latency_s=(ranks - 1) * one.latency_s)

    def _constants(self, collective: Collective, ranks: int) -> CollectiveConstants:
        known = constants_of(self.name, collective, ranks)
        return replace(known, bytes_per_s=known.bytes_per_s * self.rate)


JOINED = (*_MEASURED, *_BORROWED)
"""Devices that a fabric is known for."""


def fabric_of(device: str) -> ServingFabric:
    """The fabric of a device.

    Raises:
        SpecError: no fabric is known for it.
    """
    like = _BORROWED.get(device, device)
    if like not in _MEASURED:
        raise SpecError(f"nobody measured what joins {device}", hint=nearest(device, JOINED))
    own, measured = device_of(device).link_bytes_per_s, device_of(like).link_bytes_per_s
    rate = own / measured if own is not None and measured is not None else 1.0
    return ServingFabric(name=_MEASURED[like], rate=rate)
