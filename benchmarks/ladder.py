"""Server runs that a modelled rung saves on replayed public serving points, as CSV.

    python benchmarks/ladder.py [--data ../shared/data] [--part development|held-out|all]
        [--kinds with without misleading exact] [--error 0] [--seeds 1]

A group is the services of ``llm_serving_silicon.csv`` (ai-dynamo/aiconfigurator, Apache-2.0) of
one model, device, engine and lengths of prompt and answer, with 15 designs or more: devices,
expert-parallel devices, batch and format. A study of a group minimises the time of a token and
maximises tokens per second and device, with ``grey-box``; a run is a row of the table. "with" has
``clusters.serving`` as the lower rung of the time of a token; "without" has no rung; "misleading"
has a rung with the predictions of other designs, drawn at random; "exact" has one with the measured
times themselves, times the exponential of a normal error with the deviation ``--error``. "runs" is
the number of runs until 98 % of the hypervolume of all designs; the reference point is their worst
values. "least" is the smallest number of designs that have 98 %: no search can be below it, and
where it is more than "allowed", 15 % of the designs rounded down, no search can reach the target.
Groups are split into two halves by a hash of their names; constants of the search were chosen on
``development`` alone.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import itertools
import math
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import serving
from reference_tables import DATA

from dse import Metric, Study, evaluator
from dse.core.batch import Batch
from dse.core.pareto import hypervolume, nondominated
from dse.storage.memory import MemoryStorage
from dse_evaluators.clusters.serving.serving import Serving

NAMES = ("tp", "ep", "batch", "weight_format", "kv_format")
KINDS = ("with", "without", "misleading", "exact")
LEAST_DESIGNS = 15
TARGET = 0.98
SHARE = 0.15
"""Share of a group's runs within which the target should be reached."""
FACTS = ("model", "device", "engine", "isl", "osl", "designs", "allowed", "front", "least")
COLUMNS = (*FACTS, "kind", "seed", "runs")

Key = tuple[Any, ...]
Values = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Measured services of one model, device, engine and lengths."""

    model: str
    device: str
    engine: str
    isl: int
    osl: int
    token_s: Mapping[Key, float]
    """Time of a token of each design, in the order of :data:`NAMES`."""

    @property
    def name(self) -> str:
        """Name, from whose hash the part follows."""
        return f"{self.model} {self.device} {self.engine} {self.isl} {self.osl}"

    @property
    def part(self) -> str:
        """Half of the groups to which it belongs."""
        odd = hashlib.sha256(self.name.encode()).digest()[0] % 2
        return "held-out" if odd else "development"

    def losses(self, designs: Sequence[Key]) -> np.ndarray:
        """Return seconds per token, and negative tokens per second and device, (n, 2)."""
        seconds = np.array([self.token_s[one] for one in designs])
        devices, batch = (np.array([one[k] for one in designs], dtype=float) for k in (0, 2))
        return np.column_stack([seconds, -batch / seconds / devices])

    def predictions(self) -> dict[Key, float]:
        """Return the time of a token of each design by ``clusters.serving``, in seconds."""
        model = Serving(
            model=self.model, device=self.device, isl=self.isl, osl=self.osl, waiting=True
        )
        rows = [{**dict(zip(NAMES, one, strict=True)), "replicas": 1} for one in self.token_s]
        seconds = model.evaluate(Batch.of(rows)).columns["tpot"]
        return dict(zip(self.token_s, seconds.tolist(), strict=True))


def main() -> None:
    """Print a row for each group, kind and seed, then a summary of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--part", default="all", choices=("development", "held-out", "all"))
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--error", type=float, default=0.0, help="of the rung 'exact', relative")
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    groups = [one for one in read_groups(args.data) if args.part in ("all", one.part)]
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    rows = []
    for group in groups:
        facts = [group.model, group.device, group.engine, group.isl, group.osl]
        facts += [len(group.token_s), allowed_runs(group), len(front_of(group)), least_runs(group)]
        for kind in args.kinds:
            for seed in range(args.seeds):
                found = [*facts, kind, seed, runs_needed(group, kind, seed, args.error)]
                rows.append(dict(zip(COLUMNS, found, strict=True)))
                writer.writerow(rows[-1])
                sys.stdout.flush()
    for kind in args.kinds:
        print(summary(kind, [row for row in rows if row["kind"] == kind]), file=sys.stderr)


def read_groups(folder: Path) -> list[Group]:
    """Return the groups of enough designs, by name; repeated rows of a design are averaged."""
    found = defaultdict[Key, dict[Key, list[float]]](lambda: defaultdict(list))
    chosen: tuple[dict[str, bool], ...] = ({}, {"experts": True}, {"kinds": True})
    for options in chosen:
        for one in serving.points(folder, **options):
            kv_format = "bf16" if one.format == "bf16" else "fp8"
            design = (one.tp, one.ep, one.batch, one.format, kv_format)
            key = (one.model, one.device, one.framework, one.isl, one.osl)
            found[key][design].append(one.token_s)
    names = ("model", "device", "engine", "isl", "osl")
    groups = [
        Group(
            **dict(zip(names, key, strict=True)),
            token_s={design: float(np.mean(values)) for design, values in sorted(table.items())},
        )
        for key, table in found.items()
        if len(table) >= LEAST_DESIGNS
    ]
    return sorted(groups, key=lambda one: one.name)


class Progress:
    """Share of a group's hypervolume that some of its designs attain."""

    def __init__(self, group: Group) -> None:
        self._group = group
        every = group.losses(list(group.token_s))
        self._reference = every.max(axis=0) + 1e-9
        self._whole = hypervolume(every, self._reference)

    @property
    def reference(self) -> dict[str, float | str]:
        """Reference point, as a study takes it."""
        seconds, rate = self._reference.tolist()
        return {"server.tpot": f"{seconds} s", "batch / server.tpot / tp": f"{-rate} 1/s"}

    def share(self, designs: Sequence[Key]) -> float:
        """Return the share, from 0 to 1."""
        return hypervolume(self._group.losses(designs), self._reference) / self._whole


def allowed_runs(group: Group) -> int:
    """Return the runs within which the target should be reached."""
    return math.floor(SHARE * len(group.token_s))


def front_of(group: Group) -> list[Key]:
    """Return the designs that no other one dominates."""
    designs = list(group.token_s)
    return [designs[row] for row in np.flatnonzero(nondominated(group.losses(designs)))]


def least_runs(group: Group) -> int:
    """Return the size of the smallest set of designs that has the target, by trying all sets."""
    progress, front = Progress(group), front_of(group)
    for count in range(1, len(front)):
        if any(progress.share(some) >= TARGET for some in itertools.combinations(front, count)):
            return count
    return len(front)


def runs_needed(group: Group, kind: str, seed: int, error: float = 0.0) -> int:
    """Return the runs until the target of a study with such a rung."""
    progress, got = Progress(group), list[Key]()
    rung = group.predictions()
    if kind == "exact":
        drawn = np.random.default_rng(seed).standard_normal(len(group.token_s))
        factors = np.exp(error * drawn).tolist()
        rung = {one: s * by for (one, s), by in zip(group.token_s.items(), factors, strict=True)}
    if kind == "misleading":
        order = np.random.default_rng(seed).permutation(len(rung))
        values = list(rung.values())
        rung = {one: values[at] for one, at in zip(rung, order.tolist(), strict=True)}

    @evaluator(Metric("tpot", "s", goal="minimize"), version=group.name)
    def server(tp: int, ep: int, batch: int, weight_format: str, kv_format: str) -> Values:
        return {"tpot": group.token_s[tp, ep, batch, weight_format, kv_format]}

    @evaluator(Metric("tpot", "s", goal="minimize"), version=group.name, kind="modelled")
    def model(tp: int, ep: int, batch: int, weight_format: str, kv_format: str) -> Values:
        return {"tpot": rung[tp, ep, batch, weight_format, kv_format]}

    with tempfile.TemporaryDirectory() as draft:
        study = Study(
            "replay",
            write_space(Path(draft), group),
            [server] if kind == "without" else [model, server],
            minimize=["server.tpot"],
            maximize=["batch / server.tpot / tp"],
            fidelities={} if kind == "without" else {"server.tpot": ["model.tpot", "server.tpot"]},
            reference=progress.reference,
            storage=MemoryStorage(),
            optimizer="grey-box",
            executor="serial",
            seed=seed,
            budget={"measurements": len(group.token_s)},
        )

        def on_finished(trial: Any) -> None:
            got.append(tuple(trial.design[name] for name in NAMES))
            if progress.share(got) >= TARGET:
                study.stop()

        study.run(progress=False, on_finished=on_finished)
    return len(got)


def write_space(folder: Path, group: Group) -> Path:
    """Write a space of the group's designs, and return its file."""
    with (folder / "designs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows(group.token_s)
    space = folder / "space.yaml"
    space.write_text("space: services\ntable: designs.csv\n", encoding="utf-8")
    return space


def summary(kind: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how many runs the studies of one kind needed, as text."""
    shares = np.array([row["runs"] / row["designs"] for row in rows])
    over = np.array([row["runs"] / row["least"] for row in rows])
    can = sum(row["least"] <= row["allowed"] for row in rows)
    return (
        f"{kind}: {sum(row['runs'] for row in rows)} runs; share of a group: median "
        f"{np.median(shares):.3f}, worst {shares.max():.3f}; times the least: median "
        f"{np.median(over):.2f}; at most {SHARE:.0%}: {int((shares <= SHARE).sum())} of {len(rows)}"
        f" (possible: {can})"
    )


if __name__ == "__main__":
    main()
