"""Share of the front of vector indexes that `auto` finds, on a grid that was measured once.

Run: python benchmarks/vector_index.py record GRID.csv
     python benchmarks/vector_index.py replay GRID.csv [--seeds 5] [--limit 30]

`record` builds and searches all 170 indexes of `spaces/vector_index.yaml` over 50,000 embeddings of
sentences under the cosine, with 500 other sentences as queries, and appends each to the table;
what the table has already is left out. The embeddings are cut to their first 128 principal
components, which makes the builds three times as fast. A query's time is that of the processor, so
that other programs on the machine do not count; one thread and one query in a call. The first 51
designs, with the embeddings, took eight minutes of processor time. `replay` runs studies that look
their measurements up in the table, and prints the share of the hypervolume of the table's own front
(recall, latency, size) that each has found. The reference point is the worst values on that front
plus a tenth of their range. For comparison, designs are drawn at random.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from dse import Metric, Space, Study, evaluator
from dse.core.pareto import hypervolume, nondominated
from dse.core.values import Floats
from dse.storage.memory import MemoryStorage
from dse_evaluators.retrieval.index_kinds import KINDS, BuiltIndex, build_index
from dse_evaluators.retrieval.shipped_vectors import plays
from dse_evaluators.retrieval.vector_data import SearchData, prepare_search

SPACE = Path(__file__).parents[1] / "spaces" / "vector_index.yaml"
OBJECTIVES = ("recall", "latency", "size")
OPTIMIZERS = ("auto", "random")
WIDTH, NEIGHBOURS = 128, 10
TIMED_S = 0.3

Table = dict[str, tuple[float, ...]]


def main() -> None:
    """Record the grid, or replay studies on it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("record", "replay"))
    parser.add_argument("table", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=30)
    parser.add_argument("--space", type=Path, default=SPACE, help="a part of the space to replay")
    parser.add_argument("--kinds", nargs="*", default=[*KINDS], help="kinds of index to record")
    asked = parser.parse_args()
    if asked.what == "record":
        record(asked.table, asked.kinds)
    else:
        replay(read_table(asked.table), asked.space, asked.seeds, asked.limit)


def record(path: Path, kinds: Sequence[str]) -> None:
    """Append the measurements of the designs that the table lacks, those of a build together."""
    done = read_table(path) if path.exists() else {}
    builds: dict[str, list[dict[str, Any]]] = {}
    for design in list_designs():
        if design["index"] in kinds and key_of(design) not in done:
            built_with = KINDS[design["index"]].built_with
            build = {name: design[name] for name in ("index", *built_with)}
            builds.setdefault(key_of(build), []).append(design)
    data = read_data()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        for build, designs in builds.items():
            built = build_index(data, json.loads(build), threads=1)
            for design in designs:
                writer.writerow([key_of(design), *measure(built, data, design)])
                file.flush()


def read_data() -> SearchData:
    """Return the embeddings and queries, cut to their first principal components."""
    found = plays()
    axes = np.linalg.eigh(found.vectors.T @ found.vectors)[1][:, : -WIDTH - 1 : -1]
    vectors, queries = (np.ascontiguousarray(one @ axes) for one in (found.vectors, found.queries))
    return prepare_search(vectors, queries, distance="cosine", k=NEIGHBOURS, held_out=1)


def measure(built: BuiltIndex, data: SearchData, design: Mapping[str, Any]) -> tuple[float, ...]:
    """Return recall, seconds of the processor for a query, and bytes."""
    built.prepare({**design, "threads": 1})
    recall = data.recall(built.search(data.queries))
    done, begun_s = 0, time.process_time()
    while (spent_s := time.process_time() - begun_s) < TIMED_S:
        row = done % len(data.queries)
        built.search(data.queries[row : row + 1])
        done += 1
    return recall, spent_s / done, float(built.size)


def list_designs(space: Path = SPACE) -> list[dict[str, Any]]:
    """Return all legal designs."""
    return [dict(design) for design in Space.read(space).enumerate()]


def key_of(design: Mapping[str, Any]) -> str:
    """Return a design as text, the same for equal designs."""
    return json.dumps(dict(sorted(design.items())))


def read_table(path: Path) -> Table:
    """Return the metrics of each design of the table."""
    with path.open(newline="") as file:
        return {key: tuple(map(float, values)) for key, *values in csv.reader(file)}


def replay(recorded: Table, space: Path, seeds: int, limit: int) -> None:
    """Print the share of the hypervolume after `limit` measurements, by optimizer and seed."""
    legal = {key_of(design) for design in list_designs(space)}
    missing = legal - recorded.keys()
    assert not missing, f"{len(missing)} designs are not in the table, such as {min(missing)}"
    table = {key: recorded[key] for key in sorted(legal)}
    losses = np.array([losses_of(values) for values in table.values()])
    front = losses[nondominated(losses)]
    reference = front.max(axis=0) + 0.1 * np.ptp(front, axis=0)
    whole = hypervolume(front, reference)
    print(f"{len(table)} designs, {len(front)} on the front")
    for optimizer in OPTIMIZERS:
        runs = [run(table, space, optimizer, seed, limit) for seed in range(1, seeds + 1)]
        shares = [hypervolume(found, reference) / whole for found in runs]
        each = " ".join(f"{share:.4f}" for share in shares)
        print(f"{optimizer}: median {statistics.median(shares):.4f} of {each}", flush=True)


def losses_of(values: Sequence[float]) -> Floats:
    """Return the losses of recall, latency and size."""
    return np.array([-values[0], values[1], values[2]])


def run(table: Table, space: Path, optimizer: str, seed: int, limit: int) -> Floats:
    """Return the losses, (n, 3), of the designs that a study measures."""

    @evaluator(
        Metric("recall", goal="maximize"),
        Metric("latency", "s", goal="minimize"),
        Metric("size", "B", goal="minimize"),
        version="1",
    )
    def index(**design: Any) -> dict[str, float]:
        return dict(zip(OBJECTIVES, table[key_of(design)], strict=True))

    study = Study(
        f"replay-{optimizer}-{seed}",
        space,
        [index],
        storage=MemoryStorage(),
        optimizer=optimizer,
        seed=seed,
        executor="serial",
        budget={"measurements": limit},
    )
    study.run(progress=False)
    metrics = [trial.metrics for trial in study.trials]
    return np.array([losses_of([one[f"index.{name}"] for name in OBJECTIVES]) for one in metrics])


if __name__ == "__main__":
    main()
