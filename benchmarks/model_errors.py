"""The tables of model errors of ``clusters.serving``, ``clusters.training`` and products, as CSV.

    python benchmarks/model_errors.py [--data ../shared/data] [--write]

Serving: ``benchmarks/serving.py``, the points that are not saturated. Training: the runs of
``benchmarks/training.py`` and ``training_points.csv`` that no constant was fitted to, with
Megatron-LM's kernels or newer ones; other software is slower than the model. Products: a device and
format by the medians over its stacks, which is what a study without ``stack`` gets. ``mean`` is the
mean relative error; ``within`` that after the median factor of each group (model, device, software
and format) is divided out. No constant of serving or training was fitted to these rows; for the
products, the fits behind the medians saw some of them. On standard error: the share of the rows of
serving within twice the standard error that ``mean`` stands for.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import gemm_roofline
import numpy as np
import serving
import training
import training_validation
from reference_tables import DATA

from dse_evaluators.accelerators.devices.calibrations import calibration_of
from dse_evaluators.clusters.own_system import system_from

PACKAGE = Path(__file__).parents[1] / "evaluators" / "dse_evaluators"
COLUMNS = ("kind", "device", "format", "points", "mean", "within")
STDERR_OF_MEAN = np.sqrt(np.pi / 2)  # of a normal distribution
MEGATRON_LIKE = {"sc21", "llama3", "mlperf"}
LEAST_WITHIN = 3
"""Fewest points of a group that show its common factor."""

Row = tuple[tuple[str, str, str], str, float]
"""Kind, device and format; the group with a factor in common; log of model over measurement."""


def main() -> None:
    """Print the tables, or write them next to the models."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    served = list(serving_rows(options.data))
    tables = {
        "clusters/serving/model_errors.csv": served,
        "clusters/training/model_errors.csv": list(training_rows()),
        "accelerators/devices/model_errors.csv": list(product_rows(options.data)),
    }
    for name, rows in tables.items():
        target = (PACKAGE / name).open("w", encoding="utf-8") if options.write else sys.stdout
        writer = csv.DictWriter(target, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(summaries(rows))
        if options.write:
            target.close()
    print(f"{covered(served):.1%} of the rows of serving are inside", file=sys.stderr)


def serving_rows(folder: Path) -> Iterator[Row]:
    """The time of a token."""
    for kind, chosen in (("dense", {}), ("experts", {"experts": True}), ("kinds", {"kinds": True})):
        kept = [one for one in serving.points(folder, **chosen) if not one.saturated]
        for one, at in zip(kept, serving.told(kept), strict=True):
            group = f"{one.model} {one.device} {one.framework} {one.most_weights}"
            yield (kind, one.device, one.most_weights), group, float(np.log(at / one.token_s))


def training_rows() -> Iterator[Row]:
    """The time of a step."""
    for model in training.MEGATRON:
        for row in training.megatron(model):
            if row["what"] == "seconds":
                off = float(np.log1p(row["error"]))
                yield ("dense", "a100-sxm-80gb", "bf16"), "a100", off
    for one in (*training.BRIDGE, *training.NEWER_BRIDGE):
        row = training.rate(one)
        kind = "experts" if str(row["model"]).startswith("qwen3") else "dense"
        device = system_from(one[1]).sheet.name
        yield (kind, device, "fp8"), f"{kind} {device}", -float(np.log1p(row["error"]))
    for found in training_validation.results():
        point = found.point
        if point["suite"] in MEGATRON_LIKE:
            device = training_validation.system_of(point["system"]).device
            sign = 1.0 if point["unit"] == "s" else -1.0
            key = "dense", device, point["number_format"].replace("fp16", "bf16")
            yield key, f"{point['suite']} {device}", sign * float(np.log1p(found.off))


def product_rows(folder: Path) -> Iterator[Row]:
    """The time of a product, by the medians over the stacks of a device."""
    for part in [*gemm_roofline.vidur(folder), *gemm_roofline.aiconfigurator(folder)]:
        kept = calibration_of(part.device, part.format).constants
        group = f"{part.device} {part.framework} {part.version}"
        for off in np.log(part.predict(kept) / part.seconds).tolist():
            yield ("product", part.device, part.format), group, off


def summaries(rows: Sequence[Row]) -> Iterator[dict[str, object]]:
    """The errors of each kind, device and format."""
    by_key = defaultdict[tuple[str, str, str], list[Row]](list)
    for row in rows:
        by_key[row[0]].append(row)
    for key, some in sorted(by_key.items()):
        groups = defaultdict[str, list[float]](list)
        for _, group, off in some:
            groups[group].append(off)
        left = [
            value - np.median(one)
            for one in groups.values()
            if len(one) >= LEAST_WITHIN
            for value in one
        ]
        yield {
            **dict(zip(COLUMNS, key, strict=False)),
            "points": len(some),
            "mean": f"{np.mean(np.abs(np.expm1([off for *_, off in some]))):.3f}",
            "within": f"{np.mean(np.abs(np.expm1(left))):.3f}" if left else "",
        }


def covered(rows: Sequence[Row]) -> float:
    """The share of rows within two standard errors, by the mean of their kind, device, format."""
    mean = {tuple(one[name] for name in COLUMNS[:3]): one["mean"] for one in summaries(rows)}
    inside = [abs(np.expm1(off)) <= 2 * STDERR_OF_MEAN * float(mean[key]) for key, _, off in rows]
    return float(np.mean(inside))


if __name__ == "__main__":
    main()
