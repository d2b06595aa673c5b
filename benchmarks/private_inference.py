"""``private.bfv`` compared with SEAL on 12 pairs of layer and ring that nothing was fitted to.

    python benchmarks/private_inference.py [--repeats 3] [--speed]

The times of single operations are measured before and after each layer, by the same code as
``dse_evaluators.private_inference.measure_unit_times``. ``--speed`` prints designs a CPU second of
``private.bfv`` instead. Needs the extra ``private``.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dse.core.batch import Batch, Column
from dse_evaluators.private_inference.bfv import Bfv
from dse_evaluators.private_inference.bfv_run import BfvRun
from dse_evaluators.private_inference.measure_unit_times import measure_setting
from dse_evaluators.private_inference.packed_layer import SCHEDULES
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
WIDTHS = {"schedule": "mixed", "weight_bits": 4, "activation_bits": 4}
SHAPE = {"height": 16, "width": 16, "channels": 32, "filters": 32, "window": 3}
DESIGNS = 500_000


def compare(workload: str, layer: str, parameters: dict[str, int], repeats: int) -> list[str]:
    """Run one layer, and return its modelled and measured seconds and noise budget."""
    ring, primes = parameters["ring"], parameters["data_primes"]
    design = Batch.of([{**parameters, **WIDTHS}])
    before = measure_setting(ring, primes)
    run = BfvRun(workload=workload, layer=layer, repeats=repeats).evaluate(design).columns
    seconds = np.mean([before, measure_setting(ring, primes)], axis=0)
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times.csv"
        row = ",".join(map(str, (ring, primes, *seconds)))
        times.write_text(",".join(COLUMNS) + "\n" + row + "\n")
        model = Bfv(workload=workload, layer=layer, times=str(times)).evaluate(design).columns
    measured_s, modelled_s = run["latency"][0], model["latency"][0]
    bits = run["noise_budget"][0], model["noise_budget"][0]
    return [
        f"{workload} {layer}", str(ring), f"{measured_s:.4f}", f"{modelled_s:.4f}",
        f"{100 * (modelled_s / measured_s - 1):+.1f}", f"{bits[0]:.0f}", f"{bits[1]:.2f}",
    ]  # fmt: skip


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
    parser.add_argument("--speed", action="store_true")
    asked = parser.parse_args()
    if asked.speed:
        print(f"{designs_per_s():,.0f} designs a CPU second")
        return
    rows = csv.writer(sys.stdout)
    rows.writerow(["layer", "ring", "run_s", "model_s", "error_%", "budget", "model_budget"])
    for workload, layer in LAYERS:
        for parameters in RINGS:
            rows.writerow(compare(workload, layer, parameters, asked.repeats))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
