"""``private.bfv`` compared with SEAL on 12 pairs of layer and ring that nothing was fitted to.

    python benchmarks/private_inference.py [--repeats 3] [--rounds 3] [--drawn SEED] [--speed]

Times are CPU seconds, each operation's median over rounds. Single operations are measured between
the rounds of a layer, by the same code as
``dse_evaluators.private_inference.measure_unit_times``, since other load of a machine slows both;
``shipped_%`` is the error with the shipped times, which are of one machine. The noise budget is the
mean of runs with keys of their own, and ``farthest`` is that of the run farthest from the model.
``--drawn`` draws 12 layers, rings and moduli in place of those of two networks. ``--speed`` prints
designs a CPU second of ``private.bfv`` instead. Needs the extra ``private``.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.values import Value
from dse_evaluators.private_inference.bfv import Bfv
from dse_evaluators.private_inference.encrypted_layers import layers_from
from dse_evaluators.private_inference.encrypted_run import DrawnLayer, run_layer
from dse_evaluators.private_inference.measure_unit_times import UnitMeter
from dse_evaluators.private_inference.packed_layer import SCHEDULES
from dse_evaluators.private_inference.seal_session import BfvParameters
from dse_evaluators.private_inference.unit_times import COLUMNS

LAYERS = (
    ("digits-cnn", "conv2"),
    ("digits-cnn", "conv3"),
    ("digits-cnn", "fc2"),
    ("mnist-cnn", "conv2"),
)
RINGS = (
    {"ring": 4096, "data_primes": 2, "prime_bits": 36, "plain_bits": 20},
    {"ring": 8192, "data_primes": 3, "prime_bits": 54, "plain_bits": 22},
    {"ring": 16384, "data_primes": 4, "prime_bits": 54, "plain_bits": 24},
)
WIDTHS: dict[str, Value] = {"schedule": "mixed", "weight_bits": 4, "activation_bits": 4}
SHAPE = {"height": 16, "width": 16, "channels": 32, "filters": 32, "window": 3}
DESIGNS = 500_000
PAIRS = 12
LEAST_S = 0.01
PARAMETERS = ("ring", "data_primes", "prime_bits", "plain_bits")


def compare(
    layer: dict[str, Any], design: dict[str, Value], repeats: int, rounds: int
) -> list[str]:
    """Run one layer, and return its modelled and measured seconds and noise budget."""
    shipped = Bfv(**layer)
    batch = Batch.of([design])
    found = shipped.evaluate(batch)
    ring, primes, width, plain = (int(design[name]) for name in PARAMETERS)
    parameters = BfvParameters(ring=ring, data_primes=primes, prime_bits=width, plain_bits=plain)
    drawn_shape = layers_from(
        shipped, layer.get("workload"), layer.get("layer"), layer.get("shape")
    )
    meter, schedule = UnitMeter(ring, primes), str(design["schedule"])
    runs, units = [], []
    for seed in range(repeats):
        drawn = DrawnLayer.draw(drawn_shape[0], 4, 4, seed)
        calls = [lambda: units.append(meter.measure(LEAST_S))] * rounds
        runs.append(run_layer(drawn, parameters, schedule, in_ntt=True, between=calls))
    # Load of the machine slows both: they are measured in turns, and medians of the same minutes.
    run_s, seconds = float(np.median([run.seconds for run in runs])), np.median(units, axis=0)
    model_s = model_seconds(layer, batch, (ring, primes, *seconds))
    shipped_s, budget = (found.columns[name][0] for name in ("latency", "noise_budget"))
    budgets = np.array([run.budget for run in runs])
    farthest = budgets[np.abs(budgets - budget).argmax()]
    assert not any(run.wrong for run in runs)
    return [
        layer.get("layer") or "x".join(map(str, layer["shape"].values())),
        str(ring), f"{run_s:.4f}", f"{model_s:.4f}", f"{100 * (model_s / run_s - 1):+.1f}",
        f"{100 * (shipped_s / run_s - 1):+.1f}", f"{budgets.mean():.2f}", f"{budget:.2f}",
        f"{budgets.mean() - budget:+.2f}", f"{farthest - budget:+.2f}",
    ]  # fmt: skip


def model_seconds(layer: dict[str, Any], batch: Batch, row: Sequence[float]) -> float:
    """Return the modelled seconds of a layer by one row of unit times."""
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times.csv"
        times.write_text(",".join(COLUMNS) + "\n" + ",".join(map(str, row)) + "\n")
        return float(Bfv(**layer, times=str(times)).evaluate(batch).columns["latency"][0])


def draw_pairs(seed: int) -> Iterator[tuple[dict[str, Any], dict[str, Value]]]:
    """Yield 12 drawn layers with drawn designs that the model calls sound."""
    rng = np.random.default_rng(seed)
    count = 0
    while count < PAIRS:
        side, window = int(rng.integers(4, 17)), int(rng.choice([1, 3, 5]))
        channels, filters = (int(value) for value in rng.integers(2, 17, 2))
        shape = {
            "height": side, "width": side, "channels": channels, "filters": filters,
            "window": window,
        }  # fmt: skip
        design: dict[str, Value] = {
            "ring": int(rng.choice([4096, 8192, 16384])),
            "data_primes": int(rng.integers(1, 4)),
            "prime_bits": int(rng.integers(36, 55)),
            "plain_bits": int(rng.integers(18, 26)),
            **WIDTHS,
            "schedule": str(rng.choice(SCHEDULES)),
        }
        if not Bfv(shape=shape).evaluate(Batch.of([design])).failures:
            count += 1
            yield {"shape": shape}, design


def designs_per_s() -> float:
    """Return the designs of one layer whose metrics a CPU second yields, the best of three."""
    rng, evaluator = np.random.default_rng(0), Bfv(shape=SHAPE)
    domains = {
        "ring": (4096, 8192, 16384), "data_primes": (1, 2, 3, 4),
        "prime_bits": tuple(range(27, 55)), "plain_bits": tuple(range(17, 31)),
        "schedule": SCHEDULES, "weights_in_ntt": (False, True),
    }  # fmt: skip
    columns = {
        name: Column.coded(domain, rng.integers(len(domain), size=DESIGNS))
        for name, domain in domains.items()
    }
    batch, best_s = Batch(columns, DESIGNS), np.inf
    for _ in range(3):
        started = time.process_time()
        evaluator.evaluate(batch)
        best_s = min(best_s, time.process_time() - started)
    return DESIGNS / best_s


def main() -> None:
    """Print a table as CSV, or the designs a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--drawn", type=int)
    parser.add_argument("--speed", action="store_true")
    asked = parser.parse_args()
    if asked.speed:
        print(f"{designs_per_s():,.0f} designs a CPU second")
        return
    rows = csv.writer(sys.stdout)
    rows.writerow(
        ["layer", "ring", "run_s", "model_s", "error_%", "shipped_%", "budget", "model_budget",
         "difference", "farthest"]
    )  # fmt: skip
    pairs = [
        ({"workload": workload, "layer": layer}, {**parameters, **WIDTHS})
        for workload, layer in LAYERS
        for parameters in RINGS
    ]
    for layer, design in draw_pairs(asked.drawn) if asked.drawn is not None else pairs:
        rows.writerow(compare(layer, design, asked.repeats, asked.rounds))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
