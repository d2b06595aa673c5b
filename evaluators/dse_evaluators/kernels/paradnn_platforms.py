"""Platforms of the ParaDnn benchmarks: data-sheet rates, and constants fitted to their times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse_evaluators.accelerators.devices.devices import figures_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Fitted seconds per training step, layer, input value, weight, FLOP and activation."""

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
PLATFORMS: Mapping[str, Platform] = {
    "tpu-v2": Platform(
        flops_per_s=_SHEETS["tpu-v2"]["bf16"],
        dram_bytes_per_s=_SHEETS["tpu-v2"]["dram_bytes_per_s"],
        workers=8,
        worker_bytes=_SHEETS["tpu-v2"]["dram_bytes"] / 8,
        value_bytes=2,
        inputs=(2000, 8000),
        outputs=(200, 1000),
        fitted=Fitted(
            step=2.15117e-3,
            layer=1.23029e-5,
            input_value=8.34878e-10,
            weight=3.49341e-10,
            flop=5.05202e-15,
            activation=7.31362e-12,
        ),
    ),
    "v100": Platform(
        flops_per_s=_SHEETS["v100-sxm2"]["fp16"],
        dram_bytes_per_s=_SHEETS["v100-sxm2"]["dram_bytes_per_s"],
        workers=1,
        worker_bytes=_SHEETS["v100-sxm2"]["dram_bytes"],
        value_bytes=2,
        inputs=(2000, 2000),
        outputs=(1000, 1000),
        fitted=Fitted(
            step=2.02858e-4,
            layer=1.02834e-4,
            input_value=1.48422e-8,
            weight=7.80198e-11,
            flop=1.02408e-14,
            activation=3.63459e-11,
        ),
    ),
}
