"""The evaluator ``kernels.paradnn-fc``: one step of training a fully connected network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Fault, Kind, Metric, Metrics
from dse.core.values import Floats, Mask, Value
from dse_evaluators.alike import infeasible
from dse_evaluators.kernels.paradnn_platforms import PLATFORMS, Platform
from dse_evaluators.readings import check_readings, look_up_row, number

_PARTS = ("overhead", "weight", "activation", "compute", "input")

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    *(Metric(name=f"{name}_time", unit="s", part_of="latency") for name in _PARTS),
    Metric(name="bottleneck", words=_PARTS),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="memory", unit="B", goal="minimize"),
    Metric(name="extrapolated", words=("no", "yes")),
)

_READINGS = ("layers", "nodes", "inputs", "outputs", "batch")

_FITTED = {"layers": (4, 128), "nodes": (32, 8192), "batch": (64, 16384)}
"""Between which all fitted networks lie."""

_WEIGHT_BYTES, _ACTIVATION_BYTES = 12, 4
"""A weight and the two means that RMSProp keeps of it; what a layer hands on. All are fp32.

Of six pairs tried (12 to 20, 2 or 4) this one alone tells the 220 networks that ran out of the
TPU's memory from the 1,724 that did not, without an error.
"""

_PASSES, _WEIGHT_PASS_BYTES = 6, 28
"""How often an activation is moved, and what RMSProp moves for a weight: seven values of fp32."""


@dataclass(kw_only=True, eq=False)
class ParadnnFc:
    """Time, its parts, and memory of one step of training ``layers`` of ``nodes`` on a platform.

    Reads layers, nodes, inputs, outputs and batch. ``mode: fitted`` is a step's overhead, then
    what takes longer: the host that hands over the batch (``input_time`` is that by which it
    does), or the device, for weights, activations and multiplications. ``mode: sheet`` is the
    roofline of the data sheet, as if the board were one chip: ``compute_time`` is that by which
    multiplications take longer than bytes. The parts sum to ``latency``.

    Args:
        platform: ``tpu-v2`` (eight cores that each hold all weights) or ``v100``.
        mode: where the constants come from.

    Source:
        Wang, Wei, Brooks: Benchmarking TPU, GPU, and CPU Platforms for Deep Learning, 2019.
    """

    platform: str = "tpu-v2"
    mode: Literal["fitted", "sheet"] = "fitted"
    reads: frozenset[str] = field(init=False, default=frozenset(_READINGS))
    optional: frozenset[str] = field(init=False, default=frozenset())
    units: Mapping[str, str] = field(init=False, default_factory=dict)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(init=False, default="modelled")
    pure = True
    version: str = field(init=False, default="1")

    def __post_init__(self) -> None:
        self._platform = look_up_row("platform", self.platform, PLATFORMS)
        self._times = look_up_row("mode", self.mode, _TIMES)
        self.provides = {metric.name: metric for metric in _METRICS}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        check_readings(values, dict.fromkeys(_READINGS, number(1, 1 << 24, whole=True)))

    def evaluate(self, batch: Batch) -> Metrics:
        """The metrics of n networks."""
        platform = self._platform
        network = _Network(**{name: batch[name].astype(float) for name in _READINGS})
        parts = self._times(network, platform)
        told = np.stack([parts[name] for name in _PARTS])  # (5, n)
        latency = told.sum(axis=0)
        memory = (
            _WEIGHT_BYTES * network.weights
            + _ACTIVATION_BYTES * (network.handed + network.given) / platform.workers
        )
        return Metrics(
            columns={
                "latency": latency,
                **{f"{name}_time": parts[name] for name in _PARTS},
                "bottleneck": _bottleneck(told),
                "throughput": network.batch / latency,
                "memory": memory,
                "extrapolated": np.where(
                    (self.mode == "fitted") & _outside(network, platform), 1.0, 0.0
                ),
            },
            faults=_faults(memory, platform.worker_bytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Network:
    """Networks by their sizes, each (n,)."""

    layers: Floats
    nodes: Floats
    inputs: Floats
    outputs: Floats
    batch: Floats

    @property
    def weights(self) -> Floats:
        """Without biases: ``layers`` of ``nodes``, and one of ``outputs``."""
        inner = self.nodes * self.nodes * (self.layers - 1)
        return inner + self.nodes * self.inputs + self.nodes * self.outputs

    @property
    def flops(self) -> Floats:
        """Of the way forth, and twice as many for the way back."""
        return 6 * self.batch * self.weights

    @property
    def given(self) -> Floats:
        """Values of the batch."""
        return self.batch * self.inputs

    @property
    def handed(self) -> Floats:
        """Values that layers hand on."""
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
    """Return the index of the longest part, (n,); the host, wherever the device waits for it."""
    last = len(_PARTS) - 1
    return np.where(parts[last] > 0, last, parts[:last].argmax(axis=0)).astype(float)


def _outside(network: _Network, platform: Platform) -> Mask:
    ranges = {**_FITTED, "inputs": platform.inputs, "outputs": platform.outputs}
    columns = {name: getattr(network, name) for name in ranges}
    return np.any(
        [(columns[name] < low) | (columns[name] > high) for name, (low, high) in ranges.items()],
        axis=0,
    )


def _faults(memory: Floats, worker_bytes: float) -> dict[int, Fault]:
    return infeasible(
        np.asarray(memory > worker_bytes),
        lambda row: (
            f"a worker needs {memory[row] / 1e9:.1f} GB, has {worker_bytes / 1e9:.1f} GB: "
            f"{(memory[row] - worker_bytes) / 1e9:.1f} GB short"
        ),
    )
