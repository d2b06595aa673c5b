"""Measurements that a library of studies saves: leave one out over eight tables of graph networks.

Run: python benchmarks/transfer.py [--install] [--quick] [--tables ...] [--seeds 1] [-o FILE.csv]

NAS-Bench-Graph has the accuracy and the latency of 26,206 trained graph neural networks on each of
eight data sets. For each data set, a library of the other seven is built: studies of 500 random
networks, exported to files. A study of the data set then minimises the validation error and the
latency with `grey-box`: without transfer; with the library; and with unrelated libraries. In these
the results of each member belong to other networks: to random ones ("shuffled"), or to those with
the codes in reverse order ("mirrored"), so that they depend on the layers in other ways; or error
and latency are exchanged ("swapped"). "Needed" is the number of measurements until the target: 95 %
of the hypervolume of the table's own front, or what the study without transfer has found at its
limit, if that is less. The reference point is the worst values on that front plus a tenth of their
range. A study that does not get there counts as its limit plus one. Give "none" among the kinds.

Source: Qin, Zhang, Zhang, Zhu: NAS-Bench-Graph, NeurIPS 2022; package nas-bench-graph 1.4.0,
Apache-2.0. `--install` downloads it into the cache of assets; its files are read as data.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import pickle
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from dse import Metric, Study, Trial, evaluator
from dse.core.pareto import hypervolume, nondominated
from dse.errors import DseError
from dse.resources.asset import Asset
from dse.resources.install import install
from dse.storage.memory import MemoryStorage

ASSET = Asset(
    name="nas-bench-graph",
    package="nas-bench-graph",
    version="1.4.0",
    wheel="nas_bench_graph-1.4.0-py3-none-any.whl",
    sha256="f6ea43836262f1ee8d60c35bbbd20aa2536ee1f8492025e3b0b90096f5afc6ad",
    size_bytes=5_868_117,
    licence="Apache-2.0",
    used_by=("benchmarks/transfer.py",),
    purpose="accuracy and latency of trained graph neural networks",
    reads=("nas_bench_graph/light/*.bench",),
)
TABLES = ("arxiv", "citeseer", "computers", "cora", "cs", "photo", "physics", "pubmed")
QUICK = ("cora", "photo")
LAYERS = ("gat", "gcn", "gin", "cheb", "sage", "arma", "graph", "fc", "skip")
LINKS = ("L0000", "L0001", "L0011", "L0012", "L0013", "L0111", "L0112", "L0122", "L0123")
"""Input of each of the four layers: 0 for the network's input, else the number of a layer."""
NAMES = ("link", "layer1", "layer2", "layer3", "layer4")
KINDS = ("none", "library", "shuffled", "mirrored", "swapped")
MEMBER = 500
SHARE = 0.95

Network = tuple[str, ...]
Table = Mapping[int, tuple[float, float]]


class Numbers(pickle.Unpickler):
    """Reader of pickled numbers; any other object is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy.core.multiarray", "scalar"):
            return np.float64(0).__reduce__()[0]
        if (module, name) == ("numpy", "dtype"):
            return np.dtype
        raise pickle.UnpicklingError(f"{module}.{name} is no number")


def read_table(name: str) -> Table:
    """Return the error and the latency in ms of each network of a data set, by its code."""
    path = ASSET.folder / "nas_bench_graph" / "light" / f"{name}.bench"
    with path.open("rb") as file:
        found = Numbers(file).load()
    return {
        int(code): (1.0 - float(one["valid_perf"]), 1e3 * float(one["latency"]))
        for code, one in found.items()
    }


def network_of(code: int) -> Network:
    """Return the links and the layers of the network that a table's code denotes."""
    digits = f"{code:05d}"
    return LINKS[int(digits[0])], *(LAYERS[int(one)] for one in digits[1:])


def write_space(folder: Path, codes: Iterable[int]) -> Path:
    """Write a space of the table's networks, and return its file."""
    with (folder / "networks.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows(network_of(code) for code in sorted(codes))
    space = folder / "space.yaml"
    space.write_text("space: networks\ntable: networks.csv\n")
    return space


def begin(
    name: str,
    space: Path,
    table: Table,
    *,
    seed: int,
    limit: int,
    optimizer: str,
    **options: Any,
) -> Study:
    """Return a study of a table, in memory."""
    values = {network_of(code): pair for code, pair in table.items()}

    @evaluator(
        Metric("error", goal="minimize"), Metric("latency", "ms", goal="minimize"), version=name
    )
    def network(link: str, layer1: str, layer2: str, layer3: str, layer4: str) -> dict[str, float]:
        error, latency = values[link, layer1, layer2, layer3, layer4]
        return {"error": error, "latency": latency}

    return Study(
        name,
        space,
        [network],
        storage=MemoryStorage(),
        optimizer=optimizer,
        seed=seed,
        executor="serial",
        budget={"measurements": limit},
        **options,
    )


def change(table: Table, kind: str, seed: int) -> Table:
    """Return the table of which a member of a library of this kind is a study."""
    codes = sorted(table)
    values = [table[code] for code in codes]
    if kind == "shuffled":
        order = np.random.default_rng(seed).permutation(len(values))
        values = [values[row] for row in order]
    if kind == "mirrored":
        values.reverse()
    if kind == "swapped":
        values = [(latency, error) for error, latency in values]
    return dict(zip(codes, values, strict=True))


def build_library(
    folder: Path, space: Path, tables: Mapping[str, Table], kind: str, seed: int
) -> None:
    """Export a study of random networks for each table."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, (name, table) in enumerate(tables.items(), start=1):
        own = change(table, kind, place)
        study = begin(name, space, own, seed=100 * seed + place, limit=MEMBER, optimizer="random")
        study.run(progress=False)
        study.record.export(folder / f"{name}.jsonl")


def leave_out(folder: Path, name: str) -> Path:
    """Return a folder of links to all studies of a library but one."""
    found = folder / f"without-{name}"
    found.mkdir()
    for other in TABLES:
        if other != name:
            (found / f"{other}.jsonl").symlink_to(folder / f"{other}.jsonl")
    return found


class Front:
    """Pareto front of a table, and the share of its hypervolume that a study has found."""

    def __init__(self, table: Table) -> None:
        losses = np.array(list(table.values()))
        front = losses[nondominated(losses)]
        self.reference = front.max(axis=0) + 0.1 * np.ptp(front, axis=0)
        self._whole = hypervolume(front, self.reference)
        self._found: list[tuple[float, float]] = []
        self.shares: list[float] = []

    def add(self, trial: Trial) -> float:
        """Add a trial; return the share after it."""
        self._found.append((trial.metrics["network.error"], trial.metrics["network.latency"]))
        found = hypervolume(np.array(self._found), self.reference)
        self.shares.append(found / self._whole)
        return self.shares[-1]


def measure(
    space: Path, table: Table, seed: int, limit: int, *, target: float = SHARE, **options: Any
) -> dict[str, Any]:
    """Run a study until it has found this share of the hypervolume; return its row."""
    front = Front(table)
    error, latency = front.reference.tolist()
    reference = {"network.error": error, "network.latency": f"{latency} ms"}
    study = begin(
        "new",
        space,
        table,
        seed=seed,
        limit=limit,
        optimizer="grey-box",
        reference=reference,
        **options,
    )
    study.run(progress=False, on_finished=lambda one: front.add(one) >= target and study.stop())
    known = front.shares
    target = target if "transfer_from" in options else min(target, known[-1])
    needed = next((place for place, one in enumerate(known, 1) if one >= target), limit + 1)
    return {
        "target": target,
        "needed": needed,
        **{f"at {n}": round(known[min(n, len(known)) - 1], 3) for n in (5, 10, 20)},
    }


def main() -> None:
    """Print a row for each table, kind of library and seed, then the ratios of the medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--install", action="store_true", help="download the tables first")
    parser.add_argument("--quick", action="store_true", help="two tables, 40 measurements")
    parser.add_argument("--seeds", type=int, default=1, help="studies of each kind and table")
    parser.add_argument("--limit", type=int, default=120, help="most measurements of a study")
    parser.add_argument("--tables", nargs="*", default=TABLES, choices=TABLES)
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("-o", type=Path, help="write the rows to this CSV file, too")
    args = parser.parse_args()
    try:
        if args.install:
            install(ASSET)
        ASSET.check_installed()
    except DseError as error:
        parser.exit(2, f"{error}\n  or: python benchmarks/transfer.py --install\n")
    if args.quick:
        args.limit, args.tables = 40, QUICK
    rows = play(args.kinds, args.tables, args.seeds, args.limit)
    report(rows, args.kinds)
    if args.o:
        with args.o.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def play(
    kinds: Sequence[str], names: Sequence[str], seeds: int, limit: int
) -> list[dict[str, Any]]:
    """Run all studies; return their rows."""
    tables = {name: read_table(name) for name in TABLES}
    codes = set[int].intersection(*(set(table) for table in tables.values()))
    rows = []
    with tempfile.TemporaryDirectory() as draft:
        space = write_space(Path(draft), codes)
        for seed in range(seeds):
            libraries = {kind: Path(draft) / f"{kind}-{seed}" for kind in kinds if kind != "none"}
            for kind, folder in libraries.items():
                build_library(folder, space, tables, kind, seed)
            targets = dict.fromkeys(names, SHARE)
            for name, kind in itertools.product(names, kinds):
                options: dict[str, Any] = {"target": targets[name]}
                if kind in libraries:
                    options["transfer_from"] = {"library": str(leave_out(libraries[kind], name))}
                found = measure(space, tables[name], seed, limit, **options)
                targets[name] = found["target"]
                rows.append({"table": name, "library": kind, "seed": seed, **found})
                print(rows[-1], flush=True)
    return rows


def report(rows: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> None:
    """Print the measurements needed, and their ratio to those without transfer, by kind."""
    alone = {(row["table"], row["seed"]): row["needed"] for row in rows if row["library"] == "none"}
    for kind in kinds:
        own = [row for row in rows if row["library"] == kind]
        needed = statistics.median(row["needed"] for row in own)
        words = f"{kind:9} median needed {needed:g}"
        if alone and kind != "none":
            ratios = [row["needed"] / alone[row["table"], row["seed"]] for row in own]
            total = sum(row["needed"] for row in own) / sum(alone.values())
            words += f"; ratio: median {statistics.median(ratios):.2f}, most {max(ratios):.2f}"
            words += f", of the sums {total:.2f}"
        print(words)


if __name__ == "__main__":
    main()
