"""Evaluator ``accelerators.gpu``: a workload on one commercial device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, nearest
from dse.protocols import ModelError
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.error_table import gather_errors, state_errors
from dse_evaluators.accelerators.devices.gpu_layers import Kernels, kernels_of, kernels_of_table
from dse_evaluators.accelerators.devices.gpu_power import power_of
from dse_evaluators.accelerators.devices.gpu_run import (
    ENERGIES,
    TIMES,
    CalibratedDevice,
    GpuLoad,
    machine,
    run,
)
from dse_evaluators.accelerators.devices.platforms import Platforms, devices_of, hash_device_files
from dse_evaluators.accelerators.devices.product_errors import product_errors
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.alike import (
    evaluate_distinct,
    fix_columns,
    gather_parts,
    groups,
    infeasible,
    infeasible_rows,
)
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import check_with_lookup, look_up_row
from dse_evaluators.workloads.own.own_workload import declare_workload

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    *(Metric(name=f"{name}_time", unit="s", part_of="latency") for name in TIMES),
    Metric(name="energy", unit="J", goal="minimize"),
    *(Metric(name=f"{name}_energy", unit="J", part_of="energy") for name in ENERGIES),
    Metric(name="power", unit="W", goal="minimize"),
    Metric(name="utilization", goal="maximize"),
    Metric(name="memory", unit="B", goal="minimize"),
    Metric(name="bottleneck", words=TIMES),
    Metric(name="extrapolated", words=("no", "yes")),
    Metric(name="power_measured", words=("no", "yes")),
)

_TIMED = ("latency", "throughput", "utilization")
_EXACT = ("bottleneck", "extrapolated", "power_measured")

_WORDS = ("workload", "device", "format")
_SHARE = NumberInput(1e-6, 1, default=1.0)
_NUMBERS: Mapping[str, Reading] = {
    "batch": NumberInput(1, 2**31, default=1.0),
    "power_cap": _SHARE,
    "duty": _SHARE,
}


class Gpu(DeclaredEvaluator, reads=_NUMBERS, provides=_METRICS, version="2"):
    """Latency, energy and memory of a workload's GEMMs on one device.

    Metrics are of one batch. ``extrapolated`` flags times beyond the measurements,
    ``power_measured`` energies from a measured power model.

    Weights, keys and values of all layers, and the operands and results of the largest layer, must
    fit in memory.

    Args:
        workload: a workload of ``workloads.catalogue``, or a network of yours: a path,
            ``{python: net.py:make, input: [3, 32, 32]}``, or a module; see ``docs/workloads.md``.
        stack: software whose measured constants are used: a framework (``vllm``), a version
            (``vllm-0.24.0``), or empty for the median of all.
        platforms: figures of user-defined devices, or paths of their files: see
            :mod:`.platforms`.

    Inputs:
        device: a device of ``devices.csv`` or ``platforms``.
        format: a format of ``RECIPES``.
        power_cap: share of the power limit.
        duty: share of time in which the device works; the idle energy of the rest is included.

    Limits:
        Not modelled: operations other than GEMMs (norms, softmax, pooling), several devices,
        caches, and fused attention: scores go through memory.

    Error:
        Held-out GEMMs: mean 5.7 % (A40, A100) and 6.5 % (H100) on the kernels of Vidur; median 8.4
        % on 7,779 GEMMs of serving stacks if the stack is named, 13.3 % if not. Power: 16 to 49 %
        where it was fitted, otherwise assumed. Complete networks are not validated. Details:
        ``docs/devices.md``.

    Example:
        options: {workload: resnet18}
        parameters: {device: [a100-sxm-80gb, h100-sxm], format: [bf16], batch: [1, 8, 64]}

    Source:
        :mod:`.roofline`, :mod:`.calibrations`, :mod:`.gpu_power`; docs/devices.md for errors.

    Raises:
        SpecError: an option has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("workload", "platforms.*")

    workload: object = None
    device: str | None = None
    format: str | None = None
    batch: float | None = None
    power_cap: float | None = None
    duty: float | None = None
    stack: str = ""
    platforms: Platforms | None = None

    def __post_init__(self) -> None:
        self._own = None
        if self.workload is not None:
            found = declare_workload(self, self.workload)
            self._own = None if found.is_named else found
        self._devices = devices_of(self.platforms or {})
        edition = hash_device_files((self.platforms or {}).values())
        self.version = "-".join(filter(None, (self.version, edition)))
        words: Mapping[str, Reading] = {
            "workload": CheckedInput(check_with_lookup(kernels_of)),
            "device": CheckedInput(self._check_device),
            "format": one_of(RECIPES),
        }
        own = {} if self._own is None else {"workload": self._own.label}
        table = {**_NUMBERS, **words, **({"workload": one_of(own.values())} if own else {})}
        given = {name: own.get(name, getattr(self, name)) for name in table}
        self.declare(Readings(table).fixed({k: v for k, v in given.items() if v is not None}))
        self._fixed = {k: v for k, v in self._readings.settled.items() if k in _WORDS}

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute latency, energy and memory of n designs, with the infeasible ones."""
        return evaluate_distinct(batch, {*_WORDS, *_NUMBERS}, self._evaluate_columns)

    def model_errors(self, batch: Batch) -> Mapping[str, Sequence[ModelError]]:
        """Return the relative model errors of n runs of a network, by metric.

        The errors are marked as extrapolated, because single products were measured, not complete
        networks.
        """
        every = fix_columns(batch, self._fixed)
        parts = []
        for (_, device, number_format), rows in groups(every, dict.fromkeys(_WORDS, "")):
            outside = [True] * len(rows)
            errors = product_errors(self._device(device), number_format, self.stack, outside)
            parts.append((rows, state_errors(self.provides, errors, _TIMED, _EXACT)))
        return gather_errors(len(batch), parts)

    def _evaluate_columns(self, batch: Batch) -> Metrics:
        every = fix_columns(batch, self._fixed)
        words = groups(every, dict.fromkeys(_WORDS, ""))
        parts = ((rows, self._on(every.take(rows), *named)) for named, rows in words)
        return gather_parts(len(batch), self.provides, parts)

    def _on(self, batch: Batch, workload: str, device: str, number_format: str) -> Metrics:
        """Compute the metrics of one workload on one device in one format."""
        found = self._device(device)
        if RECIPES[number_format].rate not in found.flops_per_s:
            lacks = f"{device} has no units for {number_format}"
            return Metrics(columns={}, failures=infeasible_rows([lacks] * len(batch)))
        values = {name: self._readings.column(name, batch) for name in _NUMBERS}
        kernels = kernels_of(workload) if self._own is None else self._own_kernels
        return _run_load(machine(found, number_format, self.stack), kernels, GpuLoad(**values))

    @cached_property
    def _own_kernels(self) -> Kernels:
        assert self._own is not None
        return kernels_of_table(self._own.table)

    def _device(self, name: str) -> Device:
        if name not in self._devices:
            raise EvaluationError(f"device cannot be {name!r}", hint=nearest(name, self._devices))
        return self._devices[name]

    def _check_device(self, name: str, value: Value) -> None:
        device = look_up_row(name, value, self._devices)
        for text, recipe in RECIPES.items():
            if recipe.rate in device.flops_per_s:
                power_of(device, text)


def _run_load(machine: CalibratedDevice, kernels: Kernels, load: GpuLoad) -> Metrics:
    """Compute latency, energy and memory of n runs on a device, with faults of infeasible runs."""
    power = machine.power
    cap_w = load.power_cap * power.limit_w
    starved = cap_w <= power.base_w
    fed = np.where(starved, 1.0, load.power_cap)
    columns = run(machine, kernels, GpuLoad(batch=load.batch, power_cap=fed, duty=load.duty))
    room = machine.device.dram_bytes
    starving = infeasible(
        np.asarray(starved),
        lambda row: (
            f"a cap of {cap_w[row]:.0f} W is {power.base_w - cap_w[row]:.0f} W below the "
            f"base power of {power.base_w:.0f} W"
        ),
    )
    needs = columns["memory"]
    crowded = infeasible(
        np.asarray(needs > room),
        lambda row: (
            f"needs {needs[row] / 2**30:.1f} GiB of memory, has {room / 2**30:.1f} GiB: "
            f"{(needs[row] - room) / 2**30:.1f} GiB short"
        ),
    )
    return Metrics(columns=columns, failures=starving | crowded)
