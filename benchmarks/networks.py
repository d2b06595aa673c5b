"""Constants of networks, fitted to collectives measured between nodes and judged on others.

    python benchmarks/networks.py                                       # fit, and print the errors
    python benchmarks/networks.py --write evaluators/dse_evaluators/clusters/networks.fits.json

Of some series of sizes every second is fitted, from the first on; all else is judged: the other
sizes, and numbers of ranks and nodes that were not looked at. The measurements (Vidur and APEX+,
both MIT) are read from a folder, ``../shared/data`` unless another is named;
``tests/data/README.md`` describes them.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from reference_tables import DATA, find_table
from scipy.optimize import least_squares
from scipy.special import expit

from dse.core.values import Floats
from dse_evaluators.clusters.algorithms import ALGORITHMS
from dse_evaluators.clusters.collectives import Collective
from dse_evaluators.clusters.systems import InterNodeNetwork, System
from dse_evaluators.clusters.topology import group_of

WORDS: Mapping[str, Collective] = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "sendrecv": "send_recv",
    "send_recv": "send_recv",
}
GAP_S = 2e-6
"""Between two messages, where no all-to-all was measured: assumed."""


class Series(NamedTuple):
    """One collective among ranks of which each node has so many."""

    machine: str
    collective: Collective
    nodes: int
    inside: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What of a machine is fitted, and how many adapters a node is taken to have."""

    network: str
    machine: str
    fabric: str
    adapters: int
    fitted: tuple[tuple[int, int], ...]
    """Nodes and ranks in each; only send-receive where there is no other."""
    alone: bool
    """Whether one device reaches less than an adapter carries."""
    gap: bool
    """Whether the gap between messages was measured: by an all-to-all."""
    attempts: int
    source: str
    note: str = ""


PLANS = (
    Plan(
        network="infiniband-400",
        machine="h100_dgx",
        fabric="h100-dgx",
        adapters=8,
        fitted=((2, 1),),
        alone=False,
        gap=False,
        attempts=4,
        source="microsoft/vidur@7d47513 (MIT), data/profiling/network, send-receive of two H100",
        note="only messages between two nodes were measured: what eight adapters make of a "
        "collective is the model's; first tried without pipelining",
    ),
    Plan(
        network="a100-cluster",
        machine="a100_dgx",
        fabric="a100-dgx",
        adapters=1,
        fitted=((2, 1), (2, 8)),
        alone=True,
        gap=False,
        attempts=5,
        source="microsoft/vidur@7d47513 (MIT), data/profiling/network, A100 on two nodes",
        note="eight adapters were tried first, and no pipelining; sixteen devices are hardly "
        "faster than two, and times jump where the library changes its algorithm",
    ),
    Plan(
        network="v100-ethernet",
        machine="V100-PCIE-16GB",
        fabric="v100-pcie",
        adapters=1,
        fitted=((2, 1), (2, 4)),
        alone=False,
        gap=True,
        attempts=4,
        source="microsoft/apex_plus@8769096 (MIT), profile/comm, half precision",
        note="first tried without pipelining; a lone send-receive starts five times sooner than a "
        "collective's step, so its small messages are up to 6.6 times too slow",
    ),
)


def main() -> None:
    """Fit every network, and print by series how far off the judged points are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", type=Path, help="the file that the evaluators read")
    options = parser.parse_args()
    told = measured(options.data)
    rows = [fit(plan, told) for plan in PLANS]
    if options.write:
        options.write.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def measured(folder: Path) -> dict[Series, dict[int, float]]:
    """Seconds by size in bytes, of what went between nodes."""
    found: dict[Series, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, size, took_s in [*vidur(folder), *apex(folder)]:
        found[key][size].append(took_s)
    return {
        key: {size: float(np.median(times)) for size, times in sorted(series.items())}
        for key, series in sorted(found.items())
        if len(series) > 2
    }


def vidur(folder: Path) -> Iterator[tuple[Series, int, float]]:
    """All-reduce and send-receive as an inference framework calls them."""
    for row in read(find_table(folder, "collective_measured_vidur.csv")):
        ranks, inside = int(row["num_workers"]), int(row["devices_per_node"])
        if ranks > inside and row["system"].endswith("dgx"):
            key = Series(row["system"], WORDS[row["collective"]], ranks // inside, inside)
            yield key, int(row["size_bytes_or_elems"]), float(row["median_ms"]) * 1e-3


def apex(folder: Path) -> Iterator[tuple[Series, int, float]]:
    """Half precision; a few rows whose columns are shifted are left out."""
    for row in read(find_table(folder, "collective_measured_apex.csv")):
        nodes, inside, size = (
            int(row[name]) for name in ("num_nodes", "num_gpus_per_node", "size(kb)")
        )
        if nodes > 1 and inside in (1, 2, 4) and row["dtype"] == "half" and size:
            key = Series(row["gpu"], WORDS[row["collective"]], nodes, inside)
            yield key, size * 1024, float(row["time(us)"]) * 1e-6


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def modelled(plan: Plan, network: InterNodeNetwork, series: Series, sizes: Floats) -> Floats:
    """What the model says of one series, with nothing else on the nodes."""
    system = System(
        name=plan.machine,
        device="",
        node_devices=8,
        fabric=plan.fabric,
        network=network,
        source="",
    )
    inside = np.full(len(sizes), float(series.inside))
    ranks = inside * series.nodes
    group = group_of(system, series.collective, inside, ranks, alone=True)
    return ALGORITHMS["auto"](series.collective, sizes, group).total_s


def fit(plan: Plan, told: Mapping[Series, Mapping[int, float]]) -> dict[str, object]:
    """One row of the file of fits."""
    mine = {key: series for key, series in told.items() if key.machine == plan.machine}
    halves = {key: (key.nodes, key.inside) in plan.fitted for key in mine}
    fitted = {key: sizes(mine[key])[::2] for key in mine if halves[key]}
    judged = {key: sizes(mine[key])[1::2] if halves[key] else sizes(mine[key]) for key in mine}
    start = InterNodeNetwork(
        name=plan.network,
        level="",
        latency_s=2e-5,
        message_s=GAP_S,
        adapters=plan.adapters,
        adapter_bytes_per_s=1e10,
        device_bytes_per_s=1e10,
        message_bytes_per_s=1e10,
        pipelining=0.0,
        checked="fitted",
        source=plan.source,
    )

    def network(logs: Sequence[float] | Floats) -> InterNodeNetwork:
        rate = float(np.exp(logs[1]))
        alone = float(np.exp(logs[3])) if plan.alone else rate
        return replace(
            start,
            latency_s=float(np.exp(logs[0])),
            adapter_bytes_per_s=rate,
            device_bytes_per_s=alone,
            message_bytes_per_s=alone,
            pipelining=float(expit(logs[2])),
            message_s=float(np.exp(logs[3])) if plan.gap else GAP_S,
        )

    def off(logs: Floats, among: Mapping[Series, Floats]) -> Floats:
        return np.concatenate([ratios(plan, network(logs), mine, key, among[key]) for key in among])

    first = np.log([2e-5, 1e10, 1.0, *[1e10] * plan.alone, *[1e-5] * plan.gap])
    best = least_squares(lambda logs: off(logs, fitted), first, loss="soft_l1", f_scale=0.1).x
    errors = {key: np.abs(np.expm1(off(best, {key: judged[key]}))) for key in judged}
    for key, error in errors.items():
        print(f"{plan.network:15} {key.collective:15} {key.nodes} x {key.inside}: ", end="")
        print(f"{error.mean():6.1%} mean {error.max():7.1%} largest of {len(error)}")
    every = np.concatenate(list(errors.values()))
    print(f"{plan.network:15} {every.mean():.1%} mean, {np.median(every):.1%} median\n")
    found = network(best)
    rates = ("adapter_bytes_per_s", "device_bytes_per_s") if plan.adapters == 1 else ()
    gaps = ("message_s",) if plan.gap else ()
    kept = ("latency_s", "pipelining", *gaps, *rates, "message_bytes_per_s")
    return {
        "name": plan.network,
        "constants": {name: float(f"{getattr(found, name):.4g}") for name in kept},
        "fitted_on": points(fitted),
        "judged_on": points(judged),
        "attempts": plan.attempts,
        "judged_mean": round(float(every.mean()), 4),
        "judged_max": round(float(every.max()), 4),
        "source": plan.source,
        "note": plan.note,
    }


def ratios(
    plan: Plan,
    network: InterNodeNetwork,
    mine: Mapping[Series, Mapping[int, float]],
    key: Series,
    among: Floats,
) -> Floats:
    """Logarithms of modelled over measured, of some sizes of one series."""
    took_s = np.array([mine[key][int(size)] for size in among])
    return np.log(modelled(plan, network, key, among) / took_s)


def sizes(series: Mapping[int, float]) -> Floats:
    """The sizes of one series in bytes."""
    return np.array(list(series), dtype=np.float64)


def points(among: Mapping[Series, Floats]) -> list[str]:
    """The names of points: collective, nodes x ranks in each, bytes."""
    return [
        f"{key.collective} {key.nodes}x{key.inside} {int(size)}"
        for key in among
        for size in among[key]
    ]


if __name__ == "__main__":
    main()
