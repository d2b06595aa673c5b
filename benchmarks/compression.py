"""Accuracy, size and latency of one network under a range of compressions, and what each cost.

Run: python benchmarks/compression.py [--csv FILE]
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from pathlib import Path

from dse.core.batch import Batch
from dse.core.values import Value
from dse_evaluators.compression.post_training import PostTraining

RECIPES: tuple[dict[str, Value], ...] = (
    {},
    {"weight_format": "int8", "activation_format": "int8"},
    {"weight_format": "fp8_e4m3", "activation_format": "fp8_e4m3"},
    {"weight_format": "int4"},
    {"weight_format": "int4", "granularity": "tensor"},
    {"weight_format": "fp4_e2m1"},
    {"weight_format": "int3"},
    {"weight_format": "int2"},
    {"weight_format": "int2", "granularity": "tensor"},
    {"sparsity": 0.5},
    {"sparsity": 0.75},
    {"sparsity": 0.9},
    {"filter_keep": 0.75},
    {"filter_keep": 0.5},
    {"filter_keep": 0.25},
    {"filter_keep": 0.5, "sparsity": 0.5, "weight_format": "int4", "activation_format": "int8"},
)
REPEATS = 3
COLUMNS = ("recipe", "accuracy", "loss", "size_bytes", "latency_us", "error_us", "evaluation_s")


def main() -> None:
    """Measure all recipes and print them as a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, help="where to write the same rows")
    chosen = parser.parse_args()
    evaluator = PostTraining()
    started = time.perf_counter()
    evaluator.evaluate(Batch.of([{}]))
    first_s = time.perf_counter() - started
    print(f"first evaluation, with import, and training where no cache has it: {first_s:.2f} s\n")
    rows = [_row(evaluator, recipe) for recipe in RECIPES]
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    if chosen.csv is not None:
        with chosen.csv.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])


def _row(evaluator: PostTraining, recipe: dict[str, Value]) -> tuple[str, ...]:
    """One recipe's metrics, and the median time of an evaluation."""
    seconds = []
    got = None
    for _ in range(REPEATS):
        started = time.perf_counter()
        got = evaluator.evaluate(Batch.of([recipe]))
        seconds.append(time.perf_counter() - started)
    if got is None or got.failures:
        sys.exit(f"{recipe}: {got}")
    value = {name: float(column[0]) for name, column in got.columns.items()}
    return (
        ", ".join(f"{name} {setting}" for name, setting in recipe.items()) or "as trained (fp32)",
        f"{value['accuracy']:.4f}",
        f"{value['loss']:.4f}",
        f"{value['size']:.0f}",
        f"{value['latency'] * 1e6:.1f}",
        f"{got.spread['latency'][0] * 1e6:.1f}",
        f"{statistics.median(seconds):.3f}",
    )


if __name__ == "__main__":
    main()
