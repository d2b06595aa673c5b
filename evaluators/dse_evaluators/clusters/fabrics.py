"""Latency and bandwidth of fabrics within a node: measured, or from ``fabrics.csv``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, log
from pathlib import Path

from dse.errors import SpecError, nearest
from dse_evaluators.clusters.collectives import (
    Collective,
    CollectiveConstants,
    calibrations,
    constants_of,
    has_measurement,
)
from dse_evaluators.csv_files.csv_records import read_rows, record_of

_HALVES = ("all_gather", "reduce_scatter")

_LINKS_OF_AN_AXIS = 2.0
"""Links of a device along one axis of a torus: one in each direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmeasuredFabric:
    """Interconnect within a node without measurements, for up to ``ranks`` ranks.

    A fabric of kind ``like`` is the fabric named ``like`` with its bandwidth times ``bytes_per_s``.
    In a ``torus``, ``bytes_per_s`` is the rate of one link in one direction, and ``axis_devices``
    the number of devices along an axis. ``checked`` is ``assumed`` or ``hand-set``.
    """

    name: str
    kind: str
    ranks: int
    like: str = ""
    latency_s: float = 0.0
    bytes_per_s: float
    axis_devices: int = 1
    checked: str
    source: str

    def constants(self, collective: Collective, ranks: int) -> CollectiveConstants:
        """Return latency and bandwidth of a collective on the unmeasured fabric."""
        if self.kind == "like":
            known = within(self.like, collective, ranks)
            return replace(known, bytes_per_s=self.bytes_per_s * known.bytes_per_s)
        if self.kind == "torus":
            return self._torus(collective, ranks)
        latency_s = self.latency_s / 2.0 if collective in _HALVES else self.latency_s
        return CollectiveConstants(
            latency_s=latency_s, bytes_per_s=self.bytes_per_s, pipelining=0.0
        )

    def _torus(self, collective: Collective, ranks: int) -> CollectiveConstants:
        """Return the constants of concurrent rings along all axes, each over a part of the array.

        Ranks fill one axis of the torus before they begin the next. A message of an all-to-all
        crosses a quarter of an axis on average, and so occupies that number of links.

        Source:
            Jouppi et al.: TPU v4, ISCA 2023, section 2.
        """
        if collective == "send_recv":
            return CollectiveConstants(
                latency_s=self.latency_s, bytes_per_s=self.bytes_per_s, pipelining=0.0
            )
        axes = max(1, ceil(log(ranks, self.axis_devices) - 1e-9))
        side = ranks ** (1.0 / axes)
        rate = _LINKS_OF_AN_AXIS * axes * self.bytes_per_s
        turns = 2.0 if collective == "all_reduce" else 1.0
        crossed = max(1.0, side / 4.0) if collective == "all_to_all" else 1.0
        return CollectiveConstants(
            latency_s=turns * axes * max(side - 1.0, 1.0) * self.latency_s,
            bytes_per_s=rate / crossed,
            pipelining=0.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFabric:
    """Interconnect that a user has measured, with constants fitted to its collectives.

    Args:
        name: name of the fabric, for messages.
        measured: constants by collective and number of ranks.
        sizes: smallest and largest array that was measured [B], by collective and number of ranks.
        like: function that returns the constants of a collective that was not measured.
    """

    name: str
    measured: Mapping[tuple[Collective, int], CollectiveConstants]
    sizes: Mapping[tuple[Collective, int], tuple[float, float]]
    like: Callable[[Collective, int], CollectiveConstants]

    @property
    def checked(self) -> str:
        """Origin of the fabric's constants, which is always ``measured``."""
        return "measured"

    def constants(self, collective: Collective, ranks: int) -> CollectiveConstants:
        """Return the constants of a collective among a number of ranks.

        The constants are those of the smallest measured number of ranks that is at least ``ranks``,
        else of the largest. A collective that was not measured has the constants of the fabric
        named by ``like``.
        """
        known = sorted(count for one, count in self.measured if one == collective)
        if not known:
            return self.like(collective, ranks)
        count = next((count for count in known if count >= ranks), known[-1])
        return self.measured[collective, count]

    def has_measurement(self, collective: Collective) -> bool:
        """Return whether a collective was measured on the fabric."""
        return any(one == collective for one, _ in self.measured)


def within(fabric: str, collective: Collective, ranks: int) -> CollectiveConstants:
    """Return latency, bandwidth and pipelining of a collective within one node.

    A collective without measurements has the bandwidth and latency of an all-reduce; all-gather and
    reduce-scatter have half of the latency.

    Raises:
        SpecError: the fabric is unknown, or has neither this collective nor an all-reduce.
    """
    known = _fabrics().get(fabric, ())
    if known:
        enough = [one for one in known if one.ranks >= ranks] or list(known[-1:])
        return enough[0].constants(collective, ranks)
    if has_measurement(fabric, collective) or not has_measurement(fabric, "all_reduce"):
        return constants_of(fabric, collective, ranks)
    whole = constants_of(fabric, "all_reduce", ranks)
    return replace(whole, latency_s=whole.latency_s / 2.0) if collective in _HALVES else whole


def is_measured(fabric: str, collective: Collective) -> bool:
    """Return whether a collective was measured on a fabric, or on the fabric that it resembles."""
    rows = _fabrics().get(fabric, ())
    if rows:
        return all(row.kind == "like" and is_measured(row.like, collective) for row in rows)
    return has_measurement(fabric, collective)


def get_check_status(fabric: str) -> str:
    """Return the origin of a fabric's constants: ``measured``, ``assumed`` or ``hand-set``.

    Raises:
        SpecError: the fabric is unknown.
    """
    if any(key[0] == fabric for key in calibrations()):
        return "measured"
    if fabric not in _fabrics():
        names = {*_fabrics(), *(key[0] for key in calibrations())}
        raise SpecError(f"fabric cannot be {fabric!r}", hint=nearest(fabric, names))
    return _fabrics()[fabric][0].checked


@cache
def _fabrics() -> Mapping[str, tuple[UnmeasuredFabric, ...]]:
    """Return the fabrics of ``fabrics.csv`` by name, each as rows by ascending number of ranks."""
    found: dict[str, list[UnmeasuredFabric]] = {}
    for row in read_rows(Path(__file__).with_name("fabrics.csv")):
        fabric = record_of(row, UnmeasuredFabric, name=row["fabric"])
        found.setdefault(fabric.name, []).append(fabric)
    return {name: tuple(rows) for name, rows in found.items()}
