"""What joins the devices that share one copy of a served model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.collectives import Collective, Constants, constants_of, seconds

NODE_DEVICES = 8
"""Devices that one fabric joins; nobody measured more within a node."""

_MEASURED = {"a100-sxm-80gb": "a100-dgx", "h100-sxm": "h100-nccl", "h200-sxm": "h200-nccl"}

_BORROWED: Mapping[str, str] = dict.fromkeys(("b200-sxm", "gb200", "b300-sxm", "gb300"), "h200-sxm")
"""Nobody's measurement: the fabric of another device, at the rate of its own links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """Links within a node, ``rate`` times as fast as when they were measured."""

    name: str
    rate: float

    @property
    def borrowed(self) -> bool:
        """True if it was measured on another device."""
        return self.rate != 1.0

    def sum_s(self, size_bytes: Floats, ranks: Floats) -> Floats:
        """The time of an all-reduce, (n,); none among one rank."""
        found = np.zeros(np.broadcast_shapes(np.shape(size_bytes), np.shape(ranks)))
        for count in np.unique(ranks).tolist():
            if count > 1:
                rows = ranks == count
                constants = self._constants("all_reduce", int(count))
                found[rows] = seconds("all_reduce", size_bytes[rows], count, constants)
        return found

    def send_s(self, size_bytes: Floats) -> Floats:
        """The time of one message."""
        return seconds("send_recv", size_bytes, 2, self._constants("send_recv", 2))

    def _constants(self, collective: Collective, ranks: int) -> Constants:
        known = constants_of(self.name, collective, ranks)
        return replace(known, bytes_per_s=known.bytes_per_s * self.rate)


def fabric_of(device: str) -> Fabric:
    """The fabric of a device.

    Raises:
        SpecError: no fabric is known for it.
    """
    like = _BORROWED.get(device, device)
    if like not in _MEASURED:
        known = [*_MEASURED, *_BORROWED]
        raise SpecError(f"nobody measured what joins {device}", hint=nearest(device, known))
    own, measured = device_of(device).link_bytes_per_s, device_of(like).link_bytes_per_s
    rate = own / measured if own is not None and measured is not None else 1.0
    return Fabric(name=_MEASURED[like], rate=rate)
