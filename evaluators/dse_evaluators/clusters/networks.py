"""Links between nodes: adapters, and the rates of one device and of all in a node."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse_evaluators.fits import Fit, fits_in
from dse_evaluators.readings import look_up_row

FITS = Path(__file__).with_name("networks.fits.json")
"""The constants of networks that were measured; the other rows of the table have their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterNodeNetwork:
    """The adapters of a node and what they carry in one direction, as software makes of them.

    ``latency_s`` is of one step between two nodes, ``message_s`` the gap between two messages of
    one adapter. ``checked`` is fitted (to what was measured), scaled (from another that was),
    assumed or hand-set.
    """

    name: str
    level: str
    latency_s: float
    message_s: float
    adapters: int
    adapter_bytes_per_s: float
    device_bytes_per_s: float
    """What one device reaches when no other of its node talks."""
    message_bytes_per_s: float
    """The same in a message to one other, which no adapter carries as fast as a collective."""
    pipelining: float
    """As in :class:`collectives.CollectiveConstants`."""
    checked: str
    source: str

    def share(self, busy: Floats | float) -> Floats:
        """Bytes a second of one of so many devices of a node that talk at once."""
        return np.minimum(self.device_bytes_per_s, self.adapters * self.adapter_bytes_per_s / busy)

    def message_share(self, busy: Floats | float) -> Floats:
        """The same, where each sends one message."""
        return np.minimum(self.message_bytes_per_s, self.share(busy))

    def gap_s(self, busy: Floats | float) -> Floats:
        """The time between two messages of a device, with so many of its node talking."""
        return self.message_s * np.maximum(1.0, np.asarray(busy) / self.adapters)


@cache
def fits() -> Mapping[str, Fit]:
    """By network: what was fitted to which measurements, and judged on which."""
    return fits_in(FITS)


@cache
def networks() -> Mapping[str, InterNodeNetwork]:
    """The networks by their names."""
    with Path(__file__).with_name("networks.csv").open(encoding="utf-8", newline="") as file:
        return {row["network"]: _network(row) for row in csv.DictReader(file)}


def network_of(name: str) -> InterNodeNetwork:
    """The network of a name.

    Raises:
        SpecError: there is none; the nearest name is told.
    """
    return look_up_row("network", name, networks())


def _network(row: Mapping[str, str]) -> InterNodeNetwork:
    like = row["like"] or row["network"]
    fitted = fits()[like].constants if like in fits() else {}
    faster = float(row["faster"] or 1.0)

    def figure(name: str) -> float:
        """Return the row's figure, or else the fitted one, with rates scaled by ``faster``."""
        if row[name] or name not in fitted:
            return float(row[name] or row["device_bytes_per_s"])
        return faster ** name.endswith("per_s") * fitted[name]

    return InterNodeNetwork(
        name=row["network"],
        level=row["level"],
        latency_s=figure("latency_s"),
        message_s=figure("message_s"),
        adapters=int(row["adapters"]),
        adapter_bytes_per_s=figure("adapter_bytes_per_s"),
        device_bytes_per_s=figure("device_bytes_per_s"),
        message_bytes_per_s=figure("message_bytes_per_s"),
        pipelining=figure("pipelining"),
        checked=row["checked"],
        source=row["source"],
    )
