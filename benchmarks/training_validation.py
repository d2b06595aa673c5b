"""Published training runs against ``clusters.training``, of which one constant was fitted to one.

    python benchmarks/training_validation.py            # the table, and by suite how far off it is
    python benchmarks/training_validation.py --fit      # the share that Frontier's 22B asks for

That is what a die of an MI250X makes of its products, fitted to Frontier's 22B alone
(``clusters/chips.fits.json``) and judged on its other two. What a paper does not tell of a plan is
assumed, and named in the column ``assumed`` of ``training_points.csv``; a microbatch that is not
told is the fastest that fits. The hours of ``training_hours.csv`` are those of the fastest plan
that was found, with nothing that goes wrong: a bound, and no prediction.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from dse.core.batch import Batch
from dse.core.values import Value
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.systems import system_of
from dse_evaluators.clusters.training.training import Training
from dse_evaluators.clusters.training.training_plan import RECOMPUTED
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

POINTS = Path(__file__).with_name("training_points.csv")
HOURS = Path(__file__).with_name("training_hours.csv")
WHOLE = ("tp", "pp", "dp", "cp", "microbatch", "interleave", "global_batch", "zero")
TRUTHS = ("sequence_parallel", "overlap")
MICROBATCHES = (1, 2, 4, 8, 16)


class Result(NamedTuple):
    """One point: what was published, what the model says in the same unit, and why not, if not."""

    point: Mapping[str, str]
    published: float
    ours: float
    microbatch: int
    reason: str

    @property
    def off(self) -> float:
        return self.ours / self.published - 1.0


def main() -> None:
    """The table of all points, or the fit of the one constant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    if options.fit:
        fit()
        return
    by_suite: dict[str, list[float]] = defaultdict(list)
    for found in results():
        point = found.point
        by_suite[point["suite"]].append(abs(found.off))
        print(
            f"{point['suite']:9} {point['point']:24} {found.published:8g} {found.ours:8.4g}"
            f" {point['unit']:17} {found.off:+7.1%}  microbatch {found.microbatch}"
            f"  {found.reason}"
        )
    for suite, errors in by_suite.items():
        mean, largest = np.mean(errors), np.max(errors)
        print(f"{suite:9} mean {mean:.1%}, largest {largest:.1%} of {len(errors)}")
    for name, published, ours in hours():
        share = ours / published
        print(
            f"hours     {name:24} {published:10.0f} {ours:10.0f} device hours, {share:.0%} of them"
        )


def results() -> Iterator[Result]:
    """All points of the table."""
    with POINTS.open(newline="") as file:
        for point in csv.DictReader(file):
            yield result(point)


def result(point: Mapping[str, str]) -> Result:
    """One point, with the fastest microbatch that fits where it is not told."""
    told = point["microbatch"] != "best"
    sizes = (int(point["microbatch"]),) if told else MICROBATCHES
    evaluator = trainer(point)
    designs = [plan({**point, "microbatch": str(size)}) for size in sizes]
    found = evaluator.evaluate(Batch.of(designs))
    fine = [at for at in range(len(sizes)) if told or at not in found.failures]
    best = min(fine, key=lambda at: float(found.columns["step_time"][at]))
    step_s = float(found.columns["step_time"][best])
    failure = found.failures.get(best)
    return Result(
        point=point,
        published=float(point["published"]),
        ours=published_as(point, step_s, float(found.columns["utilization"][best])),
        microbatch=sizes[best],
        reason=failure.reason if failure else "",
    )


def trainer(point: Mapping[str, str]) -> Training:
    """The evaluator of a row of the table."""
    return Training(
        model=point["model"],
        system=point["system"],
        sequence=int(point["sequence"]),
        number_format=point["number_format"],
        fused=point["fused"] == "yes",
    )


def plan(point: Mapping[str, str]) -> dict[str, Value]:
    """The design that a row of the table tells of."""
    truths: dict[str, Value] = {name: point[name] == "yes" for name in TRUTHS}
    return {
        **{name: int(point[name]) for name in WHOLE},
        **truths,
        "recompute": point["recompute"],
    }


def published_as(point: Mapping[str, str], step_s: float, utilization: float) -> float:
    """The step in the unit of its source.

    Source:
        Narayanan et al., SC 2021, equation 3 (operations of the hardware: all of a layer is
        computed twice forward).
    """
    devices = int(point["tp"]) * int(point["pp"]) * int(point["dp"]) * int(point["cp"])
    device = device_of(system_of(point["system"]).device)
    rate = device.flops_per_s[point["number_format"]]
    model, tokens = (
        TRANSFORMERS[point["model"]],
        int(point["global_batch"]) * int(point["sequence"]),
    )
    wide, deep = model.hidden, model.layers
    more = int(point["sequence"]) / (6 * wide) + model.vocabulary / (16 * deep * wide)
    hardware = 96.0 * tokens * deep * wide**2 * (1.0 + more)
    return {
        "s": step_s,
        "% of peak": 100.0 * utilization,
        "model TFLOP/s": utilization * rate / 1e12,
        "hardware TFLOP/s": hardware / step_s / devices / 1e12,
    }[point["unit"]]


def fit() -> None:
    """What a die of an MI250X makes of its products, such that Frontier's 22B comes out."""
    with POINTS.open(newline="") as file:
        point = next(one for one in csv.DictReader(file) if one["point"] == "22B on 128")
    evaluator, design = trainer(point), plan(point)
    chips = evaluator._chips  # noqa: SLF001 - the constant that is sought lies there
    usual = chips["fp16"]

    def short(share: float) -> float:
        constants = replace(usual.constants, compute_share=share)
        chips["fp16"] = replace(usual, constants=constants)
        found = evaluator.evaluate(Batch.of([design]))
        return 100.0 * float(found.columns["utilization"][0]) - float(point["published"])

    print(f"compute_share {brentq(short, 0.1, 1.0):.3f}")


def hours() -> Iterator[tuple[str, float, float]]:
    """Device hours of published models, ours with the fastest plan and nothing that goes wrong."""
    with HOURS.open(newline="") as file:
        for row in csv.DictReader(file):
            devices, batch = int(row["devices"]), int(row["global_batch"])
            designs = list(layouts(row["model"], devices, batch))
            run = Training(model=row["model"], system=row["system"], sequence=int(row["sequence"]))
            found = run.evaluate(Batch.of(designs))
            fine = [at for at in range(len(designs)) if at not in found.failures]
            step_s = float(found.columns["step_time"][fine].min())
            steps = float(row["tokens"]) / (batch * int(row["sequence"]))
            yield row["point"], float(row["published"]), step_s * steps * devices / 3600.0


def layouts(model: str, devices: int, batch: int) -> Iterator[dict[str, Value]]:
    """Plans that might be the fastest."""
    layers = TRANSFORMERS[model].layers
    stages = [count for count in range(1, 17) if layers % count == 0]
    for tp, pp, size, again, zero in product((1, 2, 4, 8), stages, (1, 2, 4), RECOMPUTED, (1, 3)):
        dp = devices // (tp * pp)
        if batch % (dp * size) == 0:
            yield {
                "tp": tp,
                "pp": pp,
                "dp": dp,
                "microbatch": size,
                "global_batch": batch,
                "recompute": again,
                "zero": zero,
                "sequence_parallel": tp > 1,
                "overlap": True,
            }


if __name__ == "__main__":
    main()
