"""The evaluator ``accelerators.gpu``: a workload on one device that one can buy or rent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Fault, Kind, Metric, Metrics
from dse.core.values import Array, Floats, Value
from dse.errors import EvaluationError, SpecError, nearest
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.gpu_layers import kernels_of
from dse_evaluators.accelerators.devices.gpu_power import power_of
from dse_evaluators.accelerators.devices.gpu_run import ENERGIES, TIMES, Load, Machine, machine, run
from dse_evaluators.accelerators.devices.platforms import Platforms, devices_of
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.readings import check_readings, number

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

_WORDS = ("workload", "device", "format")
_NUMBERS: Mapping[str, float] = {"batch": 1.0, "power_cap": 1.0, "duty": 1.0}
_LEAST_SHARE = 1e-6
_LIMITS = {
    "batch": number(1, 2**31),
    "power_cap": number(_LEAST_SHARE, 1),
    "duty": number(_LEAST_SHARE, 1),
}


@dataclass(kw_only=True, eq=False)
class Gpu:
    """Latency, energy and memory of a workload's products on one device.

    Metrics are of one batch. Reads workload, device (of ``devices.csv`` or ``platforms``), format
    (of ``RECIPES``), and where the space has them batch (1), power_cap (a share of the limit, 1)
    and duty (the share of its time that it works, 1; it idles in the rest, which counts as energy).
    What an option sets is not read. ``extrapolated`` is of the time, ``power_measured`` of energy.

    Weights, keys and values of all layers and what the largest layer takes and gives must fit in
    memory. Not modelled: whatever is no product (norms, softmax, pooling), several devices, caches,
    and fused attention: scores go through memory.

    Args:
        stack: whose measured constants: a framework (``vllm``), a version (``vllm-0.24.0``), or
            the median of all.
        platforms: figures of own devices: see :mod:`.platforms`.

    Source:
        :mod:`.roofline`, :mod:`.calibrations`, :mod:`.gpu_power`; docs/devices.md for errors.

    Raises:
        SpecError: an option has a value that it does not take.
    """

    workload: str | None = None
    device: str | None = None
    format: str | None = None
    batch: float | None = None
    power_cap: float | None = None
    duty: float | None = None
    stack: str = ""
    platforms: Platforms | None = None
    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(init=False)
    units: Mapping[str, str] = field(init=False, default_factory=dict)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(init=False, default="modelled")
    version: str = field(init=False, default="1")

    def __post_init__(self) -> None:
        self._devices = devices_of(self.platforms or {})
        options = {name: getattr(self, name) for name in (*_WORDS, *_NUMBERS)}
        self._fixed: Mapping[str, Value] = {k: v for k, v in options.items() if v is not None}
        self.reads = frozenset(_WORDS) - self._fixed.keys()
        self.optional = frozenset(_NUMBERS) - self._fixed.keys()
        self.provides = {metric.name: metric for metric in _METRICS}
        self.check_values({name: (value,) for name, value in self._fixed.items()})

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Nothing, if it can be run on all of these values of its readings.

        Raises:
            SpecError: it cannot.
        """
        check_readings(
            values,
            {
                "workload": lambda _, value: _check_workload(value),
                "device": lambda _, value: self._check_device(value),
                "format": lambda _, value: _check_format(value),
                **_LIMITS,
            },
        )

    def evaluate(self, batch: Batch) -> Metrics:
        """The metrics of n designs."""
        among = batch.distinct({*_WORDS, *_NUMBERS})
        some = batch.take(among.rows)
        columns = {name: np.full(len(some), np.nan) for name in self.provides}
        faults = dict[int, Fault]()
        for (workload, device, number_format), rows in _alike(self._words(some)).items():
            found = self._device(device)
            if RECIPES[number_format].rate not in found.flops_per_s:
                fault = _infeasible(f"{device} has no units for {number_format}")
                faults |= dict.fromkeys(rows.tolist(), fault)
                continue
            load = self._load(some, rows)
            told, broken = _tried(machine(found, number_format, self.stack), workload, load)
            for name, column in told.items():
                columns[name][rows] = column
            faults |= {int(rows[row]): fault for row, fault in broken.items()}
        return Metrics(
            columns={name: among.spread(column) for name, column in columns.items()},
            faults=among.spread_rows(faults),
        )

    def _words(self, batch: Batch) -> list[list[str]]:
        """The workload, device and format of each row."""
        return [
            [str(self._fixed[name])] * len(batch)
            if name in self._fixed
            else [str(value) for value in batch[name].tolist()]
            for name in _WORDS
        ]

    def _load(self, batch: Batch, rows: Array) -> Load:
        values = {
            name: np.full(len(rows), float(self._fixed[name]))
            if name in self._fixed
            else batch.get(name, usual)[rows].astype(float)
            for name, usual in _NUMBERS.items()
        }
        return Load(**values)

    def _device(self, name: str) -> Device:
        if name not in self._devices:
            raise EvaluationError(f"device cannot be {name!r}", hint=nearest(name, self._devices))
        return self._devices[name]

    def _check_device(self, value: Value) -> None:
        if value not in self._devices:
            raise SpecError(f"device cannot be {value!r}", hint=nearest(str(value), self._devices))
        device = self._devices[str(value)]
        for text, recipe in RECIPES.items():
            if recipe.rate in device.flops_per_s:
                power_of(device, text)


def _tried(
    machine: Machine, workload: str, load: Load
) -> tuple[Mapping[str, Floats], dict[int, Fault]]:
    """The metrics of a load, and which of its rows cannot be."""
    power = machine.power
    cap_w = load.power_cap * power.limit_w
    starved = cap_w <= power.base_w
    fed = np.where(starved, 1.0, load.power_cap)
    told = run(machine, kernels_of(workload), Load(batch=load.batch, power_cap=fed, duty=load.duty))
    room = machine.device.dram_bytes
    faults = {
        row: _infeasible(
            f"a cap of {cap_w[row]:.0f} W is {power.base_w - cap_w[row]:.0f} W below the "
            f"{power.base_w:.0f} W that it draws before it does anything"
        )
        for row in np.flatnonzero(starved).tolist()
    }
    for row in np.flatnonzero(told["memory"] > room).tolist():
        needs = float(told["memory"][row])
        faults[row] = _infeasible(
            f"needs {needs / 2**30:.1f} GiB of memory, has {room / 2**30:.1f} GiB: "
            f"{(needs - room) / 2**30:.1f} GiB short"
        )
    return told, faults


def _infeasible(reason: str) -> Fault:
    return Fault(kind="infeasible", reason=reason)


def _alike(words: list[list[str]]) -> dict[tuple[str, ...], Array]:
    """The rows of each combination of words."""
    groups = dict[tuple[str, ...], list[int]]()
    for row, key in enumerate(zip(*words, strict=True)):
        groups.setdefault(key, []).append(row)
    return {key: np.array(rows) for key, rows in groups.items()}


def _check_workload(value: Value) -> None:
    kernels_of(str(value))


def _check_format(value: Value) -> None:
    if value not in RECIPES:
        raise SpecError(f"format cannot be {value!r}", hint=nearest(str(value), RECIPES))
