"""The evaluator ``kernels.mixed-gemm``: GEMM of 16-bit activations and weights of fewer bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Ints, Mask
from dse_evaluators.accelerators.devices.calibrations import calibration_of
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.accelerators.devices.roofline import times
from dse_evaluators.accelerators.devices.weight_only import (
    WIDTHS,
    rates_of,
    weight_only_of,
    widened_times,
    work_of,
)
from dse_evaluators.alike import infeasible_rows
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.kernels.mixed_devices import MIXED_DEVICES, MixedDevice
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_BOTTLENECKS = ("memory", "compute", "kernel")

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="memory_time", unit="s", part_of="latency"),
    Metric(name="compute_time", unit="s", part_of="latency"),
    Metric(name="kernel_time", unit="s", part_of="latency"),
    Metric(name="bottleneck", words=_BOTTLENECKS),
    Metric(name="speedup", goal="maximize"),
    Metric(name="traffic", unit="B", goal="minimize"),
    Metric(name="weight_traffic", unit="B", part_of="traffic"),
    Metric(name="scale_traffic", unit="B", part_of="traffic"),
    Metric(name="index_traffic", unit="B", part_of="traffic"),
    Metric(name="activation_traffic", unit="B", part_of="traffic"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Kernel of a GEMM: its time relative to Tilus's, its weight widths, and 2:4 sparsity."""

    factor: float
    bits: frozenset[int]
    sparse: bool = False
    measured: bool = False
    """Whether times come from constants fitted to GEMMs measured on the device, also for the dense
    GEMM that is the baseline of ``speedup``."""


_POWERS = frozenset({1, 2, 4, 8})

# Factors: Ding et al., Tilus, 2025, abstract: means over the widths that each kernel supports. It
# is assumed that Tilus itself meets the roofline. Widths: the same source, which states that
# compilers support powers of two.
KERNELS: Mapping[str, Kernel] = {
    "ideal": Kernel(factor=1.0, bits=frozenset({*range(1, 9), 16}), sparse=True),
    "tilus": Kernel(factor=1.0, bits=frozenset(range(1, 9))),
    "marlin": Kernel(factor=1.03, bits=frozenset({4}), sparse=True),
    "quant-llm": Kernel(factor=1.29, bits=frozenset({5, 6})),
    "triton": Kernel(factor=1.75, bits=_POWERS),
    "ladder": Kernel(factor=2.61, bits=_POWERS),
    "measured": Kernel(factor=1.0, bits=frozenset(WIDTHS), measured=True),
}

_SPARSE = "2:4"

_SIDE = NumberInput(1, 1 << 30, whole=True)
_READINGS: Mapping[str, Reading] = {
    "weight_bits": NumberInput(1, 16, whole=True),
    "batch": _SIDE,
    "group": NumberInput(0, 1 << 20, default=0.0, whole=True),
    "inputs": _SIDE._replace(default=73728.0),
    "outputs": _SIDE._replace(default=18432.0),
    "device": one_of(MIXED_DEVICES, "a10"),
    "sparsity": one_of(("dense", _SPARSE), "dense"),
    "kernel": one_of(KERNELS, "ideal"),
}


_DEVICES, _KERNELS = tuple(MIXED_DEVICES.values()), tuple(KERNELS)
_NAMES = tuple(MIXED_DEVICES)


class MixedGemm(
    DeclaredEvaluator,
    reads=_READINGS,
    provides=_METRICS,
    version="2",
    fits=("../accelerators/devices/weight_only.fits.json",),
):
    """Time and traffic of a GEMM of ``batch`` fp16 rows and a narrow-weight matrix on one device.

    ``memory_time`` is the time to move all bytes; ``compute_time`` is the time by which
    multiplications take longer than the moves, and ``kernel_time`` is the kernel's overhead
    according to its published factor; the three sum to ``latency``. ``speedup`` is relative to a
    dense GEMM with 16-bit weights that meets the roofline. For the kernel ``measured``, both GEMMs
    take the times of the model that :mod:`dse_evaluators.accelerators.devices.weight_only` fitted
    to TensorRT-LLM and SGLang, on the measured devices or similar ones. With 2:4 sparsity each kept
    weight has an index of two bits, and the rate of multiplications doubles.

    Inputs:
        weight_bits: 1 to 8, or 16.
        group: number of an output's weights that share a 16-bit scale; 0: all of them.
        inputs, outputs: numbers of inputs and of outputs of the weight matrix.

    Error:
        By definition, the roofline gains 3.867 (Marlin states 3.87) and 5.31 (Sparse-Marlin states
        5.3); the factors of kernels are stated by the authors of Tilus. Kernel ``measured``: 11.9 %
        on 924 held-out GEMMs; with it Marlin's gain is 3.8 on L40S, 2.2 on A100, 1.2 on H200.
        Details: ``docs/devices.md``.

    Example:
        parameters: {weight_bits: [3, 4, 8], batch: [1, 16, 64], group: [0, 128]}

    Source:
        Frantar and Alistarh: Marlin, 2024, and Castro and Alistarh: Sparse-Marlin, 2024: what is
        stored, and that both ends of the roofline are met.
    """

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return the times, traffic and speedups of n designs' GEMMs, each (n,)."""
        devices = [_DEVICES[int(place)] for place in inputs["device"].tolist()]
        kernels = [_KERNELS[int(place)] for place in inputs["kernel"].tolist()]
        matrix = _Matrix(
            rows=inputs["batch"],
            inputs=inputs["inputs"],
            outputs=inputs["outputs"],
            bits=inputs["weight_bits"],
            group=inputs["group"],
            sparse=inputs["sparsity"] > 0,
        )
        traffic = matrix.traffic()
        total = np.sum(list(traffic.values()), axis=0)
        bandwidth = np.array([device.dram_bytes_per_s for device in devices])
        rate = np.array([device.flops_per_s for device in devices])
        memory, compute = total / bandwidth, matrix.flops / rate
        waiting = np.maximum(np.where(matrix.sparse, compute / 2, compute) - memory, 0.0)
        added = (np.array([KERNELS[name].factor for name in kernels]) - 1) * (memory + waiting)
        dense = np.maximum(matrix.wide_bytes / bandwidth, compute)
        measured = np.array([KERNELS[name].measured for name in kernels])
        for place in np.unique(inputs["device"][measured]).tolist():
            for width in WIDTHS:
                alike = (inputs["device"] == place) & (matrix.bits == width)
                rows = np.flatnonzero(measured & alike)
                if len(rows) and _DEVICES[int(place)].has_measured_kernels:
                    narrow_s, dense[rows] = _measured_s(matrix, rows, _NAMES[int(place)], total)
                    added[rows] = np.maximum(narrow_s - memory[rows] - waiting[rows], 0.0)
        return Metrics(
            columns={
                "latency": memory + waiting + added,
                "memory_time": memory,
                "compute_time": waiting,
                "kernel_time": added,
                "bottleneck": np.where(added > memory + waiting, 2.0, 1.0 * (waiting > 0)),
                "speedup": dense / (memory + waiting + added),
                "traffic": total,
                **traffic,
            },
            failures=_failures(matrix, kernels, total, devices),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matrix:
    """Sizes and formats of the GEMMs of n designs, each column (n,)."""

    rows: Floats
    inputs: Floats
    outputs: Floats
    bits: Floats
    group: Floats
    sparse: Mask

    @property
    def flops(self) -> Floats:
        """Floating-point operations of the dense GEMM, including those on pruned weights."""
        return 2 * self.rows * self.inputs * self.outputs

    @property
    def wide_bytes(self) -> Floats:
        """Bytes that the dense GEMM with 16-bit weights, the baseline, reads and writes."""
        return 2 * self.inputs * self.outputs + 2 * self.rows * (self.inputs + self.outputs)

    def traffic(self) -> dict[str, Floats]:
        """Return the bytes moved for weights, scales, indices and activations, each (n,).

        16-bit weights have no scales.
        """
        weights = self.inputs * self.outputs
        kept = np.where(self.sparse, weights / 2, weights)
        shared = np.where(self.group > 0, self.group, self.inputs)
        scales = np.where(self.bits < 16, np.ceil(self.inputs / shared) * self.outputs, 0.0)
        return {
            "weight_traffic": kept * self.bits / 8,
            "scale_traffic": 2 * scales,
            "index_traffic": np.where(self.sparse, kept * 2 / 8, 0.0),
            "activation_traffic": 2 * self.rows * (self.inputs + self.outputs),
        }


def _measured_s(matrix: _Matrix, rows: Ints, name: str, total: Floats) -> tuple[Floats, Floats]:
    """Return modelled seconds of GEMMs with narrow and with 16-bit weights, for r designs, (r,).

    The models are fitted to measurements. The designs, given by the indices ``rows``, have the same
    device and weight width.
    """
    m, k, n = (side[rows] for side in (matrix.rows, matrix.inputs, matrix.outputs))
    device = device_of(name)
    rates = rates_of(device)
    each_bytes = (total[rows] - 2.0 * m * (k + n)) / (k * n)
    kernels = weight_only_of(name, int(matrix.bits[rows[0]]))
    narrow = widened_times(work_of(m, n, k, each_bytes), kernels, rates, m)
    dense = times(
        work_of(m, n, k, 2.0),
        calibration_of(name, "bf16").constants,
        flops_per_s=rates.tiles_flops_per_s,
        bytes_per_s=rates.bytes_per_s,
    )
    return narrow.total_s, dense.total_s


def _failures(
    matrix: _Matrix, kernels: Sequence[str], total: Floats, devices: Sequence[MixedDevice]
) -> dict[int, Failure]:
    """Return a fault for each design that the kernel does not support or that lacks memory."""

    def wrong(row: int) -> str | None:
        name, room, bits = kernels[row], devices[row].dram_bytes, int(matrix.bits[row])
        if KERNELS[name].measured and not devices[row].has_measured_kernels:
            return "no product with narrow weights was measured on a device like this"
        if bits not in KERNELS[name].bits:
            known = ", ".join(map(str, sorted(KERNELS[name].bits)))
            return f"{name} has weights of {known} bits, not of {bits}"
        if matrix.sparse[row] and not KERNELS[name].sparse:
            return f"{name} does not skip zeros"
        if total[row] <= room:
            return None
        short = (total[row] - room) / 1e9
        return (
            f"needs {total[row] / 1e9:.1f} GB of memory, has {room / 1e9:.1f} GB: "
            f"{short:.1f} GB short"
        )

    return infeasible_rows(map(wrong, range(len(total))))
