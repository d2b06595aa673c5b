"""The evaluator ``kernels.paradnn-fc``: cost of a training step of a fully connected network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Mask
from dse_evaluators.alike import infeasible
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.kernels.paradnn_platforms import PLATFORMS, Platform
from dse_evaluators.reading_table import NumberInput, Reading
from dse_evaluators.readings import look_up_row

_PARTS = ("overhead", "weight", "activation", "compute", "input")

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    *(Metric(name=f"{name}_time", unit="s", part_of="latency") for name in _PARTS),
    Metric(name="bottleneck", words=_PARTS),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="memory", unit="B", goal="minimize"),
    Metric(name="extrapolated", words=("no", "yes")),
)

_READINGS: Mapping[str, Reading] = dict.fromkeys(
    ("layers", "nodes", "inputs", "outputs", "batch"), NumberInput(1, 1 << 24, whole=True)
)

_FITTED = {"layers": (4, 128), "nodes": (32, 8192), "batch": (64, 16384)}
"""Ranges of the networks to which the constants were fitted; beyond, results extrapolate."""

_WEIGHT_BYTES, _ACTIVATION_BYTES = 12, 4
"""Bytes of a weight with its two RMSProp averages, and of an activation, all in fp32.

Of six pairs tried (12 to 20, 2 or 4) only this pair separates the 220 networks that ran out of the
TPU's memory from the 1,724 that did not, without an error.
"""

_PASSES, _WEIGHT_PASS_BYTES = 6, 28
"""Number of times an activation is moved, and bytes RMSProp moves per weight (7 fp32 values)."""


class ParadnnFc(DeclaredEvaluator, reads=_READINGS, provides=_METRICS, version="1"):
    """Time and memory of one training step of ``layers`` layers of ``nodes`` nodes on a platform.

    With ``mode: fitted`` the time is the overhead of a step plus the longer of two: the host's
    transfer of the batch (``input_time`` is its excess over the device's time), or the device's
    time, a sum of terms for weights, activations and multiplications. ``mode: sheet`` is the
    data-sheet roofline, with the board as one chip: ``compute_time`` is the excess of
    multiplications over memory traffic. The parts sum to ``latency``.

    Args:
        platform: ``tpu-v2`` (eight cores that each hold all weights) or ``v100``.
        mode: ``fitted`` for constants fitted to measurements, ``sheet`` for data-sheet figures.

    Error:
        Held-out times: TPU median 5.5 %, 90th percentile 28 %; V100 3.6 and 22 %. Memory: exactly
        the 220 of 1,944 networks that ran out of a TPU's memory are infeasible.

    Example:
        options: {platform: tpu-v2}
        parameters:
            {layers: [4, 16], nodes: [512, 2048], inputs: [2000], outputs: [1000], batch: [64]}

    Source:
        Wang, Wei, Brooks: Benchmarking TPU, GPU, and CPU Platforms for Deep Learning, 2019.
    """

    platform: str = "tpu-v2"
    mode: Literal["fitted", "sheet"] = "fitted"

    def __post_init__(self) -> None:
        self._platform = look_up_row("platform", self.platform, PLATFORMS)
        self._times = look_up_row("mode", self.mode, _TIMES)
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return time and memory of a training step of n networks, (n,) by name."""
        platform = self._platform
        network = _Network(**inputs)
        parts = self._times(network, platform)
        times = np.stack([parts[name] for name in _PARTS])  # (5, n)
        latency = times.sum(axis=0)
        memory = (
            _WEIGHT_BYTES * network.weights
            + _ACTIVATION_BYTES * (network.handed + network.given) / platform.workers
        )
        return Metrics(
            columns={
                "latency": latency,
                **{f"{name}_time": parts[name] for name in _PARTS},
                "bottleneck": _bottleneck(times),
                "throughput": network.batch / latency,
                "memory": memory,
                "extrapolated": np.where(
                    (self.mode == "fitted") & _outside(network, platform), 1.0, 0.0
                ),
            },
            failures=_failures(memory, platform.worker_bytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Network:
    """Sizes of n fully connected networks, each (n,)."""

    layers: Floats
    nodes: Floats
    inputs: Floats
    outputs: Floats
    batch: Floats

    @property
    def weights(self) -> Floats:
        """Number of weights, without biases, of ``layers`` hidden layers and the output layer."""
        inner = self.nodes * self.nodes * (self.layers - 1)
        return inner + self.nodes * self.inputs + self.nodes * self.outputs

    @property
    def flops(self) -> Floats:
        """Floating-point operations of a step; the backward pass has twice the forward pass's."""
        return 6 * self.batch * self.weights

    @property
    def given(self) -> Floats:
        """Number of input values of a batch, which the host transfers to the device."""
        return self.batch * self.inputs

    @property
    def handed(self) -> Floats:
        """Number of activations that all layers compute for a batch."""
        return self.batch * (self.layers * self.nodes + self.outputs)


def _compute_parts(network: _Network, platform: Platform) -> dict[str, Floats]:
    per = platform.fitted
    weight, compute = per.weight * network.weights, per.flop * network.flops
    activation = per.activation * network.handed
    work = weight + compute + activation
    return {
        "overhead": per.step + per.layer * network.layers,
        "weight": weight,
        "activation": activation,
        "compute": compute,
        "input": np.maximum(per.input_value * network.given - work, 0.0),
    }


def _sheet(network: _Network, platform: Platform) -> dict[str, Floats]:
    per_weight = 3 * platform.value_bytes + _WEIGHT_PASS_BYTES
    weight = per_weight * network.weights / platform.dram_bytes_per_s
    moved = _PASSES * platform.value_bytes * (network.given + network.handed)
    activation = moved / platform.dram_bytes_per_s
    nothing = np.zeros(len(weight))
    return {
        "overhead": nothing,
        "weight": weight,
        "activation": activation,
        "compute": np.maximum(network.flops / platform.flops_per_s - weight - activation, 0.0),
        "input": nothing,
    }


_TIMES = {"fitted": _compute_parts, "sheet": _sheet}


def _bottleneck(parts: Floats) -> Floats:
    """Return the index of the longest part of the latency, (n,).

    The result is the index of the host's input transfer whenever the device waits for it.
    """
    last = len(_PARTS) - 1
    return np.where(parts[last] > 0, last, parts[:last].argmax(axis=0)).astype(float)


def _outside(network: _Network, platform: Platform) -> Mask:
    ranges = {**_FITTED, "inputs": platform.inputs, "outputs": platform.outputs}
    columns = {name: getattr(network, name) for name in ranges}
    return np.any(
        [(columns[name] < low) | (columns[name] > high) for name, (low, high) in ranges.items()],
        axis=0,
    )


def _failures(memory: Floats, worker_bytes: float) -> dict[int, Failure]:
    return infeasible(
        np.asarray(memory > worker_bytes),
        lambda row: (
            f"a worker needs {memory[row] / 1e9:.1f} GB, has {worker_bytes / 1e9:.1f} GB: "
            f"{(memory[row] - worker_bytes) / 1e9:.1f} GB short"
        ),
    )
