"""Accuracy, band, speed and search of the evaluator ``learned`` on tables of trained networks.

Run: pip install nas-bench-graph, then python benchmarks/learned.py [DATA_SET ...] [--seed 0]

For each data set, 200 of the 26,206 networks are drawn, and the evaluator that learns from them is
judged on 3,000 others: stated against true error, coverage of the band, rank correlation beside
extra trees of scikit-learn on the same rows, without features of ours. Then 20 more networks are
checked that the model proposes, and the hypervolume is compared with that of 220 random networks.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import pickle
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse_evaluators.learned.held_out_report import judge, rank_correlation
from dse_evaluators.learned.learned_evaluator import Learned

DATA_SETS = ("arxiv", "citeseer", "computers", "cora", "cs", "photo", "physics", "pubmed")
RUNS, CHECKS, JUDGED = 200, 20, 3_000
METRICS = ("error", "latency")


def main() -> None:
    """Print one line for each data set and metric, and one for the search."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data_sets", nargs="*", default=list(DATA_SETS))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for name in asked.data_sets:
        designs, truth = read_table(name)
        order = np.random.default_rng(asked.seed).permutation(len(designs))
        report(name, designs, truth, order)
    measure_speed()


def read_table(name: str) -> tuple[list[dict[str, object]], Floats]:
    """Return the designs of a data set and their error and latency, (n, 2)."""
    from nas_bench_graph.architecture import Arch, gnn_list, link_list

    found = find_spec("nas_bench_graph")
    assert found is not None
    assert found.origin is not None
    path = Path(found.origin).parent / "light" / f"{name}.bench"
    rows = pickle.loads(path.read_bytes())
    seen, designs, truth = set[int](), [], []
    for link in link_list:
        for operators in itertools.product(gnn_list, repeat=4):
            key = Arch(list(link), list(operators)).hash_arch()
            if key in rows and key not in seen:
                seen.add(key)
                inputs = {f"in{at}": link[at] for at in range(4)}
                designs.append(inputs | {f"op{at}": one for at, one in enumerate(operators)})
                truth.append((1 - rows[key]["perf"], rows[key]["latency"]))
    return designs, np.array(truth)


def report(
    name: str, designs: Sequence[dict[str, object]], truth: Floats, order: np.ndarray
) -> None:
    """Print the accuracy on networks that were not drawn, and the search."""
    drawn, judged = order[:RUNS], order[RUNS : RUNS + JUDGED]
    made = learn(designs, truth, drawn)
    start = time.process_time()
    predicted = made.evaluate(Batch.of([designs[at] for at in judged]))
    fit_s = time.process_time() - start
    plain = baseline(designs, truth, drawn, judged)
    for column, stated in enumerate(made.reports):
        metric = METRICS[column]
        columns = predicted.columns
        band = columns[f"{metric}_low"], columns[f"{metric}_high"]
        true = truth[judged, column]
        got = judge(metric, true, columns[metric], band, runs=RUNS, model=stated.model)
        print(
            f"{name},{metric},{stated.model},stated {stated.mape:.4f} true {got.mape:.4f},"
            f"coverage {got.coverage:.3f},spearman {got.spearman:.3f} "
            f"extra trees {plain[column]:.3f}",
            flush=True,
        )
    best, chance = search(designs, truth, order, made)
    print(f"{name},search,learned {best:.3f},random {chance:.3f},fit {fit_s:.1f} s", flush=True)


def learn(designs: Sequence[dict[str, object]], truth: Floats, drawn: np.ndarray) -> Learned:
    """Return the evaluator of the drawn networks."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow([*designs[0], *METRICS])
            for at in drawn:
                writer.writerow([*designs[at].values(), *truth[at]])
        return Learned(file=str(path), metrics={"error": "", "latency": "s"})


def baseline(
    designs: Sequence[dict[str, object]], truth: Floats, drawn: np.ndarray, judged: np.ndarray
) -> list[float]:
    """Return the rank correlations of extra trees with one indicator for each value."""
    from sklearn.ensemble import ExtraTreesRegressor

    names = list(designs[0])
    levels = [(n, v) for n in names for v in sorted({d[n] for d in designs}, key=str)]

    def encode(rows: np.ndarray) -> Floats:
        return np.array([[designs[at][n] == v for n, v in levels] for at in rows], dtype=float)

    found = list[float]()
    for at in range(2):  # one fit for each metric: a joint fit would follow the larger variance
        trees = ExtraTreesRegressor(n_estimators=300, random_state=0)
        predicted = trees.fit(encode(drawn), truth[drawn, at]).predict(encode(judged))
        found.append(rank_correlation(truth[judged, at], predicted))
    return found


def search(
    designs: Sequence[dict[str, object]], truth: Floats, order: np.ndarray, made: Learned
) -> tuple[float, float]:
    """Return the share of the true hypervolume of 200 + 20 learned and of 220 random networks.

    The checks are an even selection of the predicted front over all networks, by latency; if it
    has fewer than 20, of the fronts below it, too. The truth of a network is read only when it is
    drawn or checked.
    """
    import moocore

    columns = made.evaluate(Batch.of(list(designs))).columns
    predicted = np.stack([columns[name] for name in METRICS], axis=1)  # (n, 2)
    left = np.setdiff1d(np.arange(len(designs)), order[:RUNS])
    chosen = list[int]()
    while len(chosen) < CHECKS:
        front = left[moocore.is_nondominated(predicted[left])]
        front = front[np.argsort(predicted[front, 1])]
        wanted = min(CHECKS - len(chosen), len(front))
        chosen += front[np.linspace(0, len(front) - 1, wanted).round().astype(int)].tolist()
        left = np.setdiff1d(left, front)
    scaled = np.stack([truth[:, 0], np.log(truth[:, 1])], axis=1)
    scaled = (scaled - scaled.min(axis=0)) / np.ptp(scaled, axis=0)
    everything = moocore.hypervolume(scaled, ref=[1.0, 1.0])
    ours = moocore.hypervolume(scaled[[*order[:RUNS], *chosen]], ref=[1.0, 1.0])
    random = moocore.hypervolume(scaled[order[: RUNS + CHECKS]], ref=[1.0, 1.0])
    return ours / everything, random / everything


def measure_speed() -> None:
    """Print processor time of the fit to 10,000 runs, and the rate of predictions."""
    rng = np.random.default_rng(0)
    inputs = rng.random((10_000, 6))
    target = np.exp(inputs[:, 0] * 2 + inputs[:, 1] * inputs[:, 2]) + 0.01 * rng.random(10_000)
    names = [f"x{at}" for at in range(6)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        rows = np.column_stack([inputs, target])
        np.savetxt(path, rows, delimiter=",", header=",".join([*names, "time"]), comments="")
        made = Learned(file=str(path), metrics={"time": "s"})
    start = time.process_time()
    made.evaluate(Batch.of([dict.fromkeys(names, 0.5)]))
    print(f"fit to 10,000 runs: {time.process_time() - start:.1f} s of processor time")
    many = Batch.of([dict(zip(names, row, strict=True)) for row in rng.random((50_000, 6))])
    start = time.process_time()
    made.evaluate(many)
    print(f"{len(many) / (time.process_time() - start):,.0f} predictions a second")


if __name__ == "__main__":
    main()
