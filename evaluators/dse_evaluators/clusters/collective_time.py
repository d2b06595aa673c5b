"""The evaluator ``clusters.collective``: time of a collective operation over an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse.errors import SpecError
from dse.protocols import CalibrationResult
from dse_evaluators.clusters.algorithms import ALGORITHMS
from dse_evaluators.clusters.collectives import COLLECTIVES, calibrations, compute_link_share
from dse_evaluators.clusters.fabrics import MeasuredFabric
from dse_evaluators.clusters.own_system import SystemOption, system_edition, system_from
from dse_evaluators.clusters.rules import Rule, find_rule_failures
from dse_evaluators.clusters.systems import SYSTEMS, System
from dse_evaluators.clusters.topology import ranks_inside, spread
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import Flag, NumberInput, Reading, Readings, one_of

_PARTS = ("latency", "within", "between")
_METRICS = (
    Metric(name="time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="time") for part in _PARTS),
    Metric(name="bandwidth", unit="B/s", goal="maximize"),
    Metric(name="bus_bandwidth", unit="B/s", goal="maximize"),
    Metric(name="nodes", goal="minimize"),
    Metric(name="bottleneck", words=_PARTS),
    Metric(name="extrapolated", words=("no", "yes")),
)
_READINGS: Mapping[str, Reading] = {
    "size": NumberInput(1.0, 1e15, "B"),
    "ranks": NumberInput(1, 1e6, whole=True),
    "apart": NumberInput(1, 1e6, default=1.0, whole=True),
    "system": one_of(SYSTEMS, "h100-dgx"),
    "collective": one_of(COLLECTIVES, "all_reduce"),
    "algorithm": one_of(ALGORITHMS, "auto"),
    "alone": Flag(default=False),
}
_ALGORITHMS = tuple(ALGORITHMS)
_KINDS = ("system", "collective", "algorithm", "alone")
"""Inputs that select the formula."""

_FIXED = ("collective", "algorithm", "size", "ranks", "apart")
"""Inputs that an option fixes, besides the system."""


class CollectiveTime(
    DeclaredEvaluator,
    reads=_READINGS,
    provides=_METRICS,
    version="1",
    fits=("networks.fits.json",),
):
    """Time of one collective over an array, by system, algorithm, size and ranks.

    ``bandwidth`` is the array size over the time, ``bus_bandwidth`` the rate of one link as NCCL's
    tests define it. ``auto`` is NCCL's choice of algorithm. Within one node the measured times of
    the library are used, so the algorithm matters only between nodes. ``extrapolated`` marks
    collectives between nodes, and those within a node at other sizes or more ranks than measured.

    Args:
        system: a name of ``clusters.systems``, the path of a YAML file such as ``dse calibrate
            collectives`` writes, or a mapping ``{like: h100-dgx, fabric: {bandwidth: 360 GB/s}}``;
            a list of these makes ``system`` an input of the space. Without this option, the space
            chooses among all names.

    Inputs:
        apart: devices from one rank to the next: the degree of the parallelism nested inside.
        alone: whether no other device of a node communicates; otherwise all run the same
            collective.

    Limits:
        Not modelled: in-network reduction, contention with other jobs on shared links, slow nodes.
        The constants of Frontier, TPU tori and NVLink 5 are assumed.

    Error:
        Held-out sizes within nodes: mean 6.7 %, worst series 19 % (eight A100). Between nodes:
        InfiniBand 5.5 %, A100 of a cloud 30 %, V100 over Ethernet 28 %; two published all-reduces
        are predicted 17 and 11 % too slow. Details: ``docs/collectives.md``.

    Example:
        options: {collective: all_reduce}
        parameters: {system: [h100-dgx, a100-dgx], size: [1000000, 100000000], ranks: [8, 64]}

    Source:
        The modules ``algorithms`` and ``collectives`` cite the equations, the tables ``fabrics``
        and ``networks`` the measurements.
    """

    user_options: ClassVar[Sequence[str]] = ("system",)

    system: SystemOption | Sequence[SystemOption] | None = None
    collective: str | None = None
    algorithm: str | None = None
    size: float | str | None = None
    ranks: int | None = None
    apart: int | None = None

    def __post_init__(self) -> None:
        given = self.system if isinstance(self.system, list | tuple) else [self.system]
        options = list(SYSTEMS) if self.system is None else list(given)
        self._systems = tuple(map(system_from, options))
        names = [one.name for one in self._systems]
        if not names or len(set(names)) < len(names):
            twice = next((one for one in names if names.count(one) > 1), None)
            problem = f"system has {twice!r} twice" if twice else "system is an empty list"
            raise SpecError(problem, hint="values with names of their own", part=["system"])
        usual = "h100-dgx" if self.system is None else None
        fixed = {name: getattr(self, name) for name in _FIXED if getattr(self, name) is not None}
        if self.system is not None and not isinstance(self.system, list | tuple):
            fixed["system"] = names[0]
        self.declare(Readings({**_READINGS, "system": one_of(names, usual)}).fixed(fixed))
        editions = [] if self.system is None else map(system_edition, options)
        self.version = "-".join(filter(None, (type(self).version, *editions)))

    @staticmethod
    def calibrate(file: Path, like: str) -> CalibrationResult:
        """Fit the constants of a system's collectives within a node to measured times.

        Args:
            file: output of NCCL's tests, or CSV with collective, ranks, size_bytes and time_us.
            like: name of the system that was measured.

        Raises:
            SpecError: a row is invalid, or no collective can be fitted.
        """
        # SciPy is slow to import, and only this needs it
        from dse_evaluators.clusters.collective_fit import calibrate_collectives

        return calibrate_collectives(file, like)

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return the times and bandwidths of n collective operations."""
        size, ranks, apart = (inputs[name] for name in ("size", "ranks", "apart"))
        kinds = [inputs[name] for name in _KINDS]
        shape = (len(self._systems), len(COLLECTIVES), len(_ALGORITHMS), 2)
        key = np.ravel_multi_index([kind.astype(np.intp) for kind in kinds], shape)
        found = np.zeros((5, len(size)))
        for one in np.unique(key).tolist():
            rows = np.flatnonzero(key == one)
            system, collective, algorithm, quiet = map(int, np.unravel_index(one, shape))
            chosen = self._systems[system]
            kind, count = COLLECTIVES[collective], ranks[rows]
            took = spread(
                chosen,
                kind,
                size[rows],
                count,
                apart=apart[rows],
                algorithm=_ALGORITHMS[algorithm],
                alone=bool(quiet),
            )
            inside = ranks_inside(chosen, count, apart[rows])
            found[:, rows] = [
                took.latency_s,
                took.near_s,
                took.far_s,
                compute_link_share(kind, count),
                np.ceil(count / inside),
            ]
        return self._metrics(found, kinds, size, ranks)

    def _metrics(
        self, found: Floats, kinds: Sequence[Floats], size: Floats, ranks: Floats
    ) -> Metrics:
        parts, (share, nodes) = found[:3], found[3:]
        total_s = parts[0] + parts[1] + parts[2]
        lone = COLLECTIVES.index("send_recv")
        pairs = Rule(
            (kinds[1] == lone) & (ranks != 2),
            "send_recv needs {needs:g} ranks, not {has:g}",
            ranks,
            np.full_like(ranks, 2.0),
        )
        nobody = Rule(
            ranks < 2,
            "a collective needs at least {needs:g} ranks, not {has:g}",
            ranks,
            np.full_like(ranks, 2.0),
        )
        everyone = np.ones(len(size), dtype=bool)
        failures: dict[int, Failure] = {
            **find_rule_failures(pairs, everyone),
            **find_rule_failures(nobody, everyone),
        }
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(total_s > 0, size / total_s, 0.0)
        return Metrics(
            columns={
                "time": total_s,
                **{f"{part}_time": values for part, values in zip(_PARTS, parts, strict=True)},
                "bandwidth": rate,
                "bus_bandwidth": share * rate,
                "nodes": nodes,
                "bottleneck": np.argmax(parts, axis=0).astype(np.float64),
                "extrapolated": self._flag_unmeasured_rows(kinds, size, ranks, nodes),
            },
            failures=failures,
        )

    def _flag_unmeasured_rows(
        self, kinds: Sequence[Floats], size: Floats, ranks: Floats, nodes: Floats
    ) -> Floats:
        """Return 1 for designs outside the measured array sizes and rank counts, else 0, (n,)."""
        inside = np.zeros(len(size), dtype=bool)
        for system in np.unique(kinds[0]).astype(int).tolist():
            for collective in np.unique(kinds[1]).astype(int).tolist():
                known = _find_measured_range(self._systems[system], COLLECTIVES[collective])
                if known:
                    most, low, high = known
                    rows = (kinds[0] == system) & (kinds[1] == collective)
                    inside |= rows & (ranks <= most) & (size >= low) & (size <= high)
        return (~inside | (nodes > 1)).astype(np.float64)


def _find_measured_range(system: System, collective: str) -> tuple[float, float, float] | None:
    """Return the most ranks and the smallest and largest array [B] measured within a node.

    The result is ``None`` if there are no measurements.
    """
    own = system.own_fabric
    if isinstance(own, MeasuredFabric):
        known = [key for key in own.measured if key[0] == collective]
        lows, highs = zip(*(own.sizes[key] for key in known), strict=True) if known else ((), ())
        return (max(key[1] for key in known), min(lows), max(highs)) if known else None
    fitted = [key for key in calibrations() if key[:2] == (system.fabric, collective)]
    if not fitted:
        return None
    sizes = [size for key in fitted for size in calibrations()[key].fitted_bytes]
    return max(key[2] for key in fitted), min(sizes), max(sizes)
