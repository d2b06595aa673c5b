"""Tables of studies/reproductions that learn from runs: drawn, measured or trained anew.

    python benchmarks/study_tables.py gennape      # needs the asset nas-bench-graph
    python benchmarks/study_tables.py gpperf       # measures 200 matrix products on one core
    python benchmarks/study_tables.py projektor    # trains on 66 mixtures of sources, at two sizes
    python benchmarks/study_tables.py lc_pfn       # trains 60 perceptrons for 50 epochs
    python benchmarks/study_tables.py mixed_precision  # 48 trainings on one core

Each writes into the folder --folder, by default studies/reproductions. Times are those of this
machine; the others are the same each time, with the same versions of the libraries.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Row = Sequence[object]
Array = NDArray[np.float64]

FOLDER = Path(__file__).parents[1] / "studies" / "reproductions"
DATA_SETS = ("arxiv", "cora", "cs", "photo")
CHAIN = 8
"""Number of the tree whose four operations form a chain."""
EPOCHS = 50
STEP = 10
"""Mixtures of sources have shares of tenths."""


def main() -> None:
    """Write the tables of the studies that are named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("studies", nargs="+", choices=sorted(WRITERS))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_args()
    for name in asked.studies:
        WRITERS[name](asked.folder)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Row]) -> None:
    """Write a table, row by row."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_graph_networks(folder: Path) -> None:
    """Write 200 trained graph networks, none of them a chain, by what their graphs consist of."""
    from dse_evaluators.architectures.cell_graphs import hash_cells
    from dse_evaluators.architectures.trained_graph_nets import (
        OPERATIONS,
        SKIP,
        cells_of,
        read_trained_networks,
    )

    keys = np.arange((CHAIN + 1) * 10**4)
    keys = keys[(cells_of(keys)[1] < len(OPERATIONS)).all(axis=1) & (keys < CHAIN * 10**4)]
    drawn = np.random.default_rng(0).permutation(keys)[:300]
    inputs, operations = cells_of(drawn)
    asked = hash_cells(inputs, operations, skip=SKIP)
    depth = np.ones((len(drawn), 5), dtype=int)
    depth[:, 0] = 0
    for node in range(1, 5):
        depth[:, node] += depth[np.arange(len(drawn)), inputs[:, node - 1]]
    accuracies, known = [], np.ones(len(drawn), dtype=bool)
    for name in DATA_SETS:
        hashes, table = read_trained_networks(name)
        places = np.minimum(np.searchsorted(hashes, asked), len(hashes) - 1)
        known &= hashes[places] == asked
        accuracies.append(table["search"][places])
    counts = [(operations == code).sum(axis=1) for code in range(len(OPERATIONS))]
    features = np.stack([*counts, depth.max(axis=1), (inputs == 0).sum(axis=1)], axis=1)
    rows = [
        [*features[at].tolist(), *(f"{one[at]:.6g}" for one in accuracies)]
        for at in np.flatnonzero(known)[:200]
    ]
    header = [*OPERATIONS, "depth", "first", *DATA_SETS]
    write_table(folder / "gennape_runs.csv", header, rows)


def write_products(folder: Path) -> None:
    """Write 150 timed matrix products to learn from, and 50 others."""
    sizes: Mapping[str, Sequence[int]] = {
        **dict.fromkeys(("m", "n", "k"), (64, 128, 256, 512)),
        "tile_m": (4, 8, 16, 32, 64),
        "tile_n": (16, 32, 64),
        "tile_k": (4, 8, 16, 32, 64),
    }
    rng, designs = np.random.default_rng(0), list[dict[str, int]]()
    while len(designs) < 200:
        design = {name: int(rng.choice(one)) for name, one in sizes.items()}
        if design not in designs:
            designs.append(design)
    rows = [
        [
            *one.values(),
            2 * one["m"] * one["n"] * one["k"],
            f"{1e3 * time_product(one):.5g}",
        ]
        for one in designs
    ]
    header = [*sizes, "operations", "latency"]
    write_table(folder / "gpperf_runs.csv", header, rows[:150])
    held_out = ([at, *row] for at, row in enumerate(rows[150:]))
    write_table(folder / "gpperf_held_out.csv", ["number", *header], held_out)


def time_product(design: Mapping[str, int]) -> float:
    """Return the processor time of a product by the kernel of ``kernels.tiled-gemm`` [s]."""
    from dse_evaluators.generic.call_clock import CallTiming, time_by
    from dse_evaluators.kernels.measured import tiled_gemm
    from dse_evaluators.kernels.measured.compiled_c import bind_arrays, load_kernel

    words = {name.upper(): str(value) for name, value in design.items()}
    words |= {"REAL": "float", "VECTOR": "8", "ROWS": "4", "UNROLL": "2"}
    words |= {"FIRST": "LOOP_M", "SECOND": "LOOP_N", "THIRD": "LOOP_K"}
    library = load_kernel(Path(tiled_gemm.__file__).with_suffix(".c"), words)
    rng, output = np.random.default_rng(0), np.empty((design["m"], design["n"]), np.float32)
    left, right = (
        rng.random((design[one], design[other]), np.float32) for one, other in ("mk", "kn")
    )
    call = bind_arrays(library, left, right, output, threads=1)
    found, _ = time_by(call, CallTiming(clock="processor", precision=0.02, limit_s=0.3))
    return found


def write_mixtures(folder: Path) -> None:
    """Write the accuracy of a perceptron on each mixture of three sources, at two sizes.

    One source has the digits 0 to 4, one the digits 5 to 9; the third has all, and three labels of
    ten are wrong. The images of the test are in no source.
    """
    shares = [
        (a / STEP, b / STEP, (STEP - a - b) / STEP)
        for a in range(STEP + 1)
        for b in range(STEP + 1 - a)
    ]
    rows = [
        [*(f"{one:g}" for one in share), *(f"{train_mixture(share, n):.4f}" for n in (100, 400))]
        for share in shares
    ]
    write_table(folder / "projektor.csv", ["low", "high", "noisy", "pilot", "full"], rows)
    drawn = np.random.default_rng(0).permutation(len(rows))[:25]
    pilot = [rows[at][:4] for at in sorted(drawn)]
    write_table(folder / "projektor_pilot.csv", ["low", "high", "noisy", "accuracy"], pilot)


def train_mixture(share: Sequence[float], size: int) -> float:
    """Return the mean accuracy of five trainings on a mixture of the sources."""
    from sklearn.linear_model import LogisticRegression

    images, labels = read_digits()
    test = np.arange(len(labels)) % 3 == 0
    found = list[float]()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        pool = rng.permutation(np.flatnonzero(~test))
        wrong = rng.integers(1, 10, len(labels)) * (rng.random(len(labels)) < 0.3)
        thirds = (pool[labels[pool] < 5], pool[labels[pool] >= 5], pool)
        counts = [round(size * one) for one in share]
        rows = [part[:count] for part, count in zip(thirds, counts, strict=True)]
        given = [labels[rows[0]], labels[rows[1]], (labels + wrong)[rows[2]] % 10]
        taken, targets = np.concatenate(rows), np.concatenate(given)
        model = LogisticRegression(max_iter=300).fit(images[taken], targets)
        found.append(float(model.score(images[test], labels[test])))
    return float(np.mean(found))


def write_curves(folder: Path) -> None:
    """Write the accuracy of 60 perceptrons after each of 50 epochs."""
    rows = (
        [run, epoch, f"{value:.4f}"]
        for run in range(60)
        for epoch, value in enumerate(draw_curve(run), start=1)
    )
    write_table(folder / "lc_pfn.csv", ["run", "epoch", "accuracy"], rows)


def draw_curve(number: int) -> list[float]:
    """Train a perceptron with drawn width, depth, rate, decay and batch; return its accuracies."""
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(number)
    images, labels = read_digits()
    test = np.arange(len(labels)) % 3 == 0
    model = MLPClassifier(
        hidden_layer_sizes=(int(2 ** rng.uniform(2, 7)),) * int(rng.integers(1, 4)),
        learning_rate_init=float(10 ** rng.uniform(-4.5, -1.5)),
        alpha=float(10 ** rng.uniform(-6, 0)),
        batch_size=int(2 ** rng.uniform(4, 8)),
        solver=str(rng.choice(["adam", "sgd"])),
        random_state=number,
    )
    found = list[float]()
    for _ in range(EPOCHS):
        model.partial_fit(images[~test], labels[~test], classes=np.arange(10))
        found.append(float(model.score(images[test], labels[test])))
    return found


def write_precisions(folder: Path) -> None:
    """Write the processor time of twelve trainings in each precision, of two perceptrons [s].

    Precisions alternate, so that the machine is as warm and as busy for one as for the other.
    """
    networks = {"narrow": (100, 32), "wide": (2048, 256)}
    rows = [
        (f"{name}-{precision}", run, f"{time_training(precision, run, *shape):.4f}")
        for name, shape in networks.items()
        for run in range(-1, 12)
        for precision in ("fp32", "bf16")
    ]
    warm = [row for row in rows if row[1] >= 0]  # the first run of each also compiles and allocates
    write_table(folder / "mixed_precision.csv", ["setting", "run", "processor_time"], warm)


def time_training(precision: str, run: int, width: int, batch: int) -> float:
    """Return the processor time of a training of four epochs on the digits [s]."""
    import time

    import torch
    from torch import nn

    from dse.core.batch import Batch
    from dse_evaluators.scaling.recipes.training_run import TrainingRun

    torch.set_num_threads(1)
    layers = [nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    made = TrainingRun(
        model=nn.Sequential(*layers, nn.Linear(width, 10)),
        data={"arrays": read_digits(), "calibration": 0.8, "test": 0.1},
        quality="accuracy",
        start="random",
        epochs=4,
        batch=batch,
        learning_rate=0.001,
        precision=precision,
    )
    started = time.process_time()
    made.evaluate(Batch.of([{"seed": max(run, 0)}]))
    return time.process_time() - started


def read_digits() -> tuple[Array, NDArray[np.int64]]:
    """Return scikit-learn's digits, (n, 64) from 0 to 1, and their labels, (n,)."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return images / 16, labels


WRITERS: Mapping[str, Callable[[Path], None]] = {
    "gennape": write_graph_networks,
    "gpperf": write_products,
    "projektor": write_mixtures,
    "lc_pfn": write_curves,
    "mixed_precision": write_precisions,
}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
