"""Platforms of the ParaDnn benchmarks: data-sheet rates, and constants fitted to measured times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse_evaluators.accelerators.devices.devices import figures_from
from dse_evaluators.csv_files.csv_records import read_rows, record_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Fitted time constants: seconds per step, layer, input value, weight, FLOP and activation."""

    step: float
    layer: float
    input_value: float
    """Per input value of the batch that the host transfers, concurrently with the device."""
    weight: float
    flop: float
    activation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """Board with its data-sheet rates in the training format, and its fitted constants.

    Each of the board's ``workers`` (cores or GPUs) holds all weights in its memory of
    ``worker_bytes`` and processes an equal share of the batch.
    """

    flops_per_s: float
    dram_bytes_per_s: float
    workers: int
    worker_bytes: float
    value_bytes: float
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    """Ranges of inputs and outputs of the networks to which the constants were fitted."""
    fitted: Fitted


_SHEETS = figures_from("wang-2019")


# Rates and memory are the paper's, of a board of eight cores of TPU v2 and of a V100. Fitted here
# to the times that the authors recorded (ParaDnn's repository, Apache-2.0: 1,724 networks on the
# TPU, 176 on the GPU), with 4, 32 and 128 layers; 8, 16 and 64 were held out. Six forms were tried
# on both; this one has the least error on the fitted parts of both together. The median error, held
# out: TPU 5.5 % (a tenth are off by more than 28 %), GPU 3.6 % (22 %). The TPU's 0.35 ns for a
# weight are 105 bytes at a core's share of the bandwidth, the GPU's 0.08 ns are 70.
# benchmarks/paradnn_fit.py reproduces all of it.
def _platform(row: Mapping[str, str]) -> Platform:
    sheet, workers = _SHEETS[row["device"]], int(row["workers"])
    return Platform(
        flops_per_s=sheet[row["format"]],
        dram_bytes_per_s=sheet["dram_bytes_per_s"],
        workers=workers,
        worker_bytes=sheet["dram_bytes"] / workers,
        value_bytes=float(row["value_bytes"]),
        inputs=(int(row["least_inputs"]), int(row["most_inputs"])),
        outputs=(int(row["least_outputs"]), int(row["most_outputs"])),
        fitted=record_of(row, Fitted),
    )


PLATFORMS: Mapping[str, Platform] = {
    row["name"]: _platform(row)
    for row in read_rows(Path(__file__).with_name("paradnn_platforms.csv"))
}
