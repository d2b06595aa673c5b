"""Evaluator ``edge.microcontroller``: a network that runs or is trained on a microcontroller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.alike import infeasible
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, one_of
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.own.own_workload import declare_workload

_FORMATS: Mapping[Value, float] = {"fp32": 4.0, "fp16": 2.0, "int8": 1.0}
"""Bytes of a number, by format."""

_REGISTER_BYTES = 4.0
"""Width of the vector registers: a 32-bit core computes 4 / bytes numbers at once."""

_TASKS = ("inference", "training")

_INPUTS: Mapping[str, Reading] = {
    "task": one_of(_TASKS, "inference"),
    "number_format": ChoiceInput(dict(_FORMATS), "fp32"),
    "cores": NumberInput(1, 1024, whole=True),
    "mac_rate": NumberInput(1e-6, 1e3),
    "scalar_share": NumberInput(0, 1),
    "serial_share": NumberInput(0, 1, default=0.0),
    "clock": NumberInput(1e3, 1e12, "Hz"),
    "bandwidth": NumberInput(1, 1e15, "B/s"),
    "power": NumberInput(0, 1e6, "W"),
    "memory": NumberInput(1, 1e15, "B"),
}

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="cycles", goal="minimize"),
    Metric(name="compute_time", unit="s"),
    Metric(name="transfer_time", unit="s"),
    Metric(name="macs"),
    Metric(name="macs_per_cycle", goal="maximize"),
    Metric(name="memory_need", unit="B", goal="minimize"),
    Metric(name="simd_speedup", goal="maximize"),
)


class Microcontroller(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Time, energy and memory of a network, or of one step of its training, on a microcontroller.

    Cores with 32-bit registers compute two fp16 or four int8 products at once, but ``scalar_share``
    of the fp32 cycles, such as loads of single values and changes of layout, is not shortened. Each
    layer takes the longer of its computation and of the transfer of its operands. A step of
    training computes each product three times: forwards, for the weights' gradients, and for the
    inputs' gradients (not in the first layer).

    Args:
        workload: a workload of ``workloads.catalogue``, or a network of yours: a path,
            ``{python: net.py:make, input: [3, 32, 32]}``, or a module; see ``docs/workloads.md``.

    Inputs:
        task: ``inference`` or ``training``, of one example.
        number_format: ``fp32``, ``fp16`` or ``int8``, of weights, activations and gradients.
        cores: number of cores that share each layer.
        mac_rate: multiply-accumulates of one core per cycle, in fp32.
        scalar_share: share of the fp32 cycles that vectors do not shorten; 0.163 gives the 1.72
            times that Nadalini et al. measured for a convolution in fp16.
        serial_share: share of the cycles that one core alone takes.
        clock: clock of the cores.
        bandwidth: bandwidth of transfers of weights and activations to the memory of the cores.
        power: power of the chip at work.
        memory: memory of the chip. A design whose weights, gradients and activations need more is
            infeasible.

    Limits:
        Only matrix products are modelled. Transfers are overlapped with computation and read each
        operand once. Training keeps all weights, their gradients and all layers' inputs; inference
        keeps all weights and the largest pair of input and output, padding included. int8 is for
        inference only.

    Error:
        Not validated on a chip. ``scalar_share`` of 0.163 was solved from one measured ratio; the
        rates of ResNet8 and DS-CNN in the same paper (3.11 and 0.81 products a cycle) are of other
        layers and were not compared.

    Source:
        Nadalini et al.: Reduced Precision Floating-Point Optimization for Deep Neural Network
        On-Device Learning on MicroControllers, 2023, abstract. Amdahl's law for both shares.

    Example:
        options:
          workload: digits-cnn
          mac_rate: 0.3
          scalar_share: 0.163
          bandwidth: 1 GB/s
          power: 50 mW
          memory: 2 MB
        parameters: {number_format: [fp32, fp16], cores: [1, 8], clock: [100000000.0]}

    Raises:
        SpecError: an option has an invalid value, or the network has no layers.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = "digits-cnn"
    task: str | None = None
    number_format: str | None = None
    cores: float | None = None
    mac_rate: float | None = None
    scalar_share: float | None = None
    serial_share: float | None = None
    clock: float | str | None = None
    bandwidth: float | str | None = None
    power: float | str | None = None
    memory: float | str | None = None

    def __post_init__(self) -> None:
        self._workload = declare_workload(self, self.workload)
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats], /) -> Metrics:
        """Return the metrics of n designs; too much memory makes a design infeasible."""
        macs, weights, read, made = _count(self._workload.layers)
        size, trains = inputs["number_format"], inputs["task"] == 1
        passes = np.where(trains[:, None], np.r_[2.0, np.full(len(macs) - 1, 3.0)], 1.0)  # (n, l)
        scalar, serial = inputs["scalar_share"], inputs["serial_share"]
        vector = scalar + (1 - scalar) * size / _REGISTER_BYTES
        parallel = serial + (1 - serial) / inputs["cores"]
        each = vector * parallel / inputs["mac_rate"]  # cycles of a product
        compute_s = passes * macs * (each / inputs["clock"])[:, None]
        moved = passes * (weights + read + made) * size[:, None]
        transfer_s = moved / inputs["bandwidth"][:, None]
        latency_s = np.maximum(compute_s, transfer_s).sum(axis=1)
        kept = np.where(trains, 2 * weights.sum() + read.sum() + made[-1], 0.0)
        need = size * np.where(trains, kept, weights.sum() + (read + made).max())
        total = (passes * macs).sum(axis=1)
        cycles = latency_s * inputs["clock"]
        memory = inputs["memory"]
        failures = infeasible(
            need > memory,
            lambda row: f"it needs {need[row]:.0f} B of the {memory[row]:.0f} B of memory",
        ) | infeasible(trains & (size < 2), lambda _: "training in int8 is not modelled")
        return Metrics(
            columns={
                "latency": latency_s,
                "energy": latency_s * inputs["power"],
                "cycles": cycles,
                "compute_time": compute_s.sum(axis=1),
                "transfer_time": transfer_s.sum(axis=1),
                "macs": total,
                "macs_per_cycle": total / cycles,
                "memory_need": need,
                "simd_speedup": 1 / vector,
            },
            failures=failures,
        )


def _count(layers: Sequence[Layer]) -> tuple[Floats, Floats, Floats, Floats]:
    """Return products, weights, inputs and outputs of the layers, each (l,)."""
    rows = [
        (
            one.macs,
            one.weights,
            one.height * one.width * one.channels * one.copies,
            one.output_height * one.output_width * one.filters * one.copies,
        )
        for one in layers
    ]
    macs, weights, read, made = np.array(rows, dtype=float).T
    return macs, weights, read, made
