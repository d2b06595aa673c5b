"""CSV files of services and training steps of a device with known constants, and drawn noise."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from dse_evaluators.accelerators.devices.calibrations import calibration_on
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.chips import chips_of
from dse_evaluators.clusters.collectives import CollectiveConstants, seconds
from dse_evaluators.clusters.measured_rows import MeasuredRow
from dse_evaluators.clusters.scale_fit import SCALED
from dse_evaluators.clusters.serving.serving_fit import predict_tpot
from dse_evaluators.clusters.training.training_fit import predict_step

TRUE = dict(zip(SCALED, (0.75, 0.85, 2.0), strict=True))
"""Factors of the constants that made the rows."""

NOISE = 0.02


def scaled_row(device, number_format, constants):
    """The constants of a device file, each by its factor."""
    found = calibration_on(device, number_format)
    values = {name: float(getattr(constants, name)) or 1e-15 for name in ("exponent", "chain_s")}
    values |= {name: getattr(constants, name) * factor for name, factor in TRUE.items()}
    values["conversion_bytes"] = float(constants.conversion_bytes) or 1e-15
    ends = ("least_m", "most_m", "least_n", "most_n", "least_k", "most_k")
    names = {"format": number_format, "framework": "", "version": "", "points": 1}
    errors = dict.fromkeys(("heldout_mape", "heldout_median", "naive_mape"), 0.1)
    return {**names, **values, **errors, **dict(zip(ends, found.ranges, strict=True))}


def made(rows, predict, device, constants):
    """The rows with the seconds of a device with other constants, and noise."""
    own = replace(device, calibrations=(scaled_row(device, "bf16", constants),))
    noise = np.exp(np.random.default_rng(1).normal(0.0, NOISE, len(rows)))
    return predict(own, rows) * noise


def write(path, rows, seconds, time):
    with path.open("w", newline="", encoding="utf-8") as file:
        first = rows[0]
        writer = csv.writer(file)
        writer.writerow(["model", *first.options, *first.design, time])
        for row, one in zip(rows, seconds.tolist(), strict=True):
            writer.writerow([row.model, *row.options.values(), *row.design.values(), one])


def write_services(path, models=("llama3-8b", "llama3-70b")):
    """Write a CSV file of 12 services of each model on an H100 with other constants."""
    rows = [
        MeasuredRow(
            where="rows.csv:2",
            model=model,
            options={"isl": isl, "osl": 512},
            design={"tp": tp, "batch": batch, "weight_format": "bf16", "kv_format": "bf16"},
            seconds=1.0,
        )
        for model, tp, batch, isl in product(models, (4, 8), (1, 16, 128), (128, 4096))
    ]
    device = device_of("h100-sxm")
    seconds = made(rows, predict_tpot, device, calibration_on(device, "bf16").constants)
    write(path, rows, seconds, "tpot_s")


def write_steps(path, models=("gpt-1.7b", "llama2-7b"), sizes=(1, 4)):
    """Write a CSV file of training steps of models on H100s with other constants.

    Each has 4 steps for each size of the microbatch.
    """
    rows = [
        MeasuredRow(
            where="steps.csv:2",
            model=model,
            options={"sequence": sequence},
            design={"tp": tp, "pp": 1, "dp": 2, "microbatch": size, "global_batch": 16}
            | {"number_format": "bf16"},
            seconds=1.0,
        )
        for model, tp, size, sequence in product(models, (1, 4), sizes, (256, 2048))
    ]
    device = device_of("h100-sxm")
    seconds = made(
        rows, partial(predict_step, "h100-dgx"), device, chips_of(device)["bf16"].constants
    )
    write(path, rows, seconds, "step_time_s")


def write_collectives(path):
    """Write a CSV file of all-reduces of 8 ranks on a node with other constants."""
    sizes = [1 << power for power in range(10, 31, 2)]
    constants = CollectiveConstants(latency_s=2.4e-5, bytes_per_s=2.1e11, pipelining=0.3)
    took_s = seconds("all_reduce", np.array(sizes, dtype=float), 8, constants)
    rows = (
        f"all_reduce,8,{size},{one!r}" for size, one in zip(sizes, took_s.tolist(), strict=True)
    )
    path.write_text("\n".join(["collective,ranks,size_bytes,time_s", *rows, ""]))
