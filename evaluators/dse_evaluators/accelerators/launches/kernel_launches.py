"""Evaluator ``accelerators.kernel-launches``: a network whose kernels a host launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.calibrations import calibration_on
from dse_evaluators.accelerators.devices.operators import (
    OperatorDevice,
    OperatorRun,
    Operators,
    kernel_times,
    operators_of,
)
from dse_evaluators.accelerators.devices.platforms import Platforms, devices_of, hash_device_files
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.launches.launch_queue import QUEUE_METRICS, run_queue
from dse_evaluators.alike import fix_columns, gather_parts, groups, infeasible_rows
from dse_evaluators.amounts import amount
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import (
    CheckedInput,
    Flag,
    NumberInput,
    Reading,
    Readings,
    one_of,
)
from dse_evaluators.readings import check_with_lookup, look_up_row
from dse_evaluators.workloads.catalogue import table_of
from dse_evaluators.workloads.own.own_workload import declare_workload

_METRICS = (
    *QUEUE_METRICS,
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="extrapolated", words=("no", "yes")),
)
_HOST: Mapping[str, Reading] = {
    "host_time": NumberInput(0, 1, "s"),
    "launch_latency": NumberInput(0, 1, "s"),
}
_NUMBERS: Mapping[str, Reading] = {
    **_HOST,
    "batch": NumberInput(1, 1 << 24, default=1.0),
    "small_kernels": NumberInput(0, 1000, default=3, whole=True),
    "small_kernel_time": NumberInput(0, 1, "s", default=2e-6),
    "passes": NumberInput(0, 100, default=1.0),
    "fused": NumberInput(1, 1 << 20, default=1, whole=True),
    "graph": Flag(default=False),
}
_WORDS = {"workload": "", "device": "", "format": "fp16"}


class KernelLaunches(DeclaredEvaluator, reads=_NUMBERS, provides=_METRICS, version="1"):
    """Latency of a network whose kernels are launched by a host, and what it waits for.

    The host launches a kernel every ``host_time``; a kernel begins ``launch_latency`` after its
    launch, but not before the one before it has ended. The total kernel launch and queuing time
    (``tklqt``) sums the times from each launch to its kernel: ``launch_time`` is what the launches
    take on an idle device, ``queue_time`` the rest. ``bound`` is ``launch`` where a host of twice
    the speed would shorten the latency more than a device of twice the speed.

    Args:
        workload: a workload of ``workloads.catalogue``, or a network of yours; see
            ``docs/workloads.md``.
        platforms: figures of devices of yours, or paths of their files: see :mod:`.platforms`.
        hosts: hosts by device, as ``{h100-pcie: {host_time: 5.5 us, launch_latency: 2.4 us}}``, if
            each device has its own; otherwise both are inputs.

    Inputs:
        device: a device of ``devices.csv`` or ``platforms``.
        format: a format of ``RECIPES``.
        host_time: time of the host for each launch, with the framework's; not with ``hosts``.
        launch_latency: time from a launch to its kernel on an idle device; not with ``hosts``.
        batch: inputs of a run.
        small_kernels: launches of elementwise kernels for each product with weights.
        small_kernel_time: time of an elementwise kernel on very little data.
        passes: times that these kernels together read and write the result of the product.
        fused: kernels in a row that become one launch, without saving work on the device.
        graph: whether all kernels are launched at once, as a CUDA graph is.

    Limits:
        One stream; attention is one kernel; the host never waits for the device. Queries, keys and
        values are one product, unless your network has three. The memory is not checked.

    Error:
        Not validated: ``accelerators.traced-launches`` replays a trace of yours. Products have the
        errors of ``accelerators.gpu``. Times of hosts are the user's.

    Source:
        Vellaisamy et al.: Characterizing and Optimizing LLM Inference Workloads on CPU-GPU Coupled
        Architectures, 2025: the metrics. The queue is this project's own.

    Example:
        options: {workload: bert-base, device: h100-sxm, host_time: 6 us, launch_latency: 2.5 us}
        parameters: {batch: [1, 8, 64], graph: [false, true]}

    Raises:
        SpecError: an option has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("workload", "platforms.*")

    workload: object = None
    device: str | None = None
    format: str | None = None
    host_time: float | str | None = None
    launch_latency: float | str | None = None
    batch: float | None = None
    small_kernels: float | None = None
    small_kernel_time: float | str | None = None
    passes: float | None = None
    fused: float | None = None
    graph: bool | None = None
    hosts: Mapping[str, Mapping[str, Any]] | None = None
    platforms: Platforms | None = None

    def __post_init__(self) -> None:
        self._own = None
        if self.workload is not None:
            found = declare_workload(self, self.workload)
            self._own = None if found.is_named else found
        self._devices = devices_of(self.platforms or {})
        edition = hash_device_files((self.platforms or {}).values())
        self.version = "-".join(filter(None, (self.version, edition)))
        self._hosts = {name: self._host(name, one) for name, one in (self.hosts or {}).items()}
        words: Mapping[str, Reading] = {
            "workload": CheckedInput(check_with_lookup(table_of)),
            "device": CheckedInput(self._check_device),
            "format": one_of(RECIPES, _WORDS["format"]),
        }
        own = {} if self._own is None else {"workload": self._own.label}
        table = {**_NUMBERS, **words, **({"workload": one_of(own.values())} if own else {})}
        given = {name: own.get(name, getattr(self, name)) for name in table}
        if self._hosts:
            self._refuse_hosts_times(given)
            table = {name: one for name, one in table.items() if name not in _HOST}
        settled = {k: v for k, v in given.items() if v is not None and k in table}
        self.declare(Readings(table).fixed(settled))
        self._fixed = {k: v for k, v in self.readings.settled.items() if k in _WORDS}

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, with a fault for each that its device cannot run."""
        every = fix_columns(batch, self._fixed)
        parts = (
            (rows, self._evaluate_group(every.take(rows), *words))
            for words, rows in groups(every, _WORDS)
        )
        return gather_parts(len(batch), self.provides, parts)

    def _evaluate_group(self, batch: Batch, workload: str, name: str, number: str) -> Metrics:
        device, recipe = look_up_row("device", name, self._devices), RECIPES[number]
        if recipe.rate not in device.flops_per_s:
            reasons = [f"{name} has no units for {number}"] * len(batch)
            return Metrics(columns={}, failures=infeasible_rows(reasons))
        calibration = calibration_on(device, number)
        on = OperatorDevice(device=device, recipe=recipe, calibration=calibration)
        numbers = [key for key in _NUMBERS if key in self.readings.table]
        values = {key: self.readings.column(key, batch) for key in numbers}
        for key, time in self._hosts.get(name, {}).items():
            values[key] = np.full(len(batch), time)
        own = self._own
        operators = _operators_of(workload) if own is None else operators_of(own.table)
        columns = {key: np.empty(len(batch)) for key in self.provides}
        alike = np.stack([values[key] for key in ("small_kernels", "fused", "graph")])
        for some in np.unique(alike, axis=1).T:
            rows = np.flatnonzero((alike == some[:, None]).all(axis=0))
            taken = {key: column[rows] for key, column in values.items()}
            for key, column in _queue_columns(operators, on, taken).items():
                columns[key][rows] = column
        columns["throughput"] = values["batch"] / columns["latency"]
        columns["extrapolated"] = np.full(len(batch), float(not calibration.own))
        return Metrics(columns=columns)

    def _host(self, name: str, times: object) -> Mapping[str, float]:
        """Return the times of a host [s].

        Raises:
            SpecError: the device is unknown, or a time is missing or invalid.
        """
        look_up_row("hosts", name, self._devices)
        part = ["hosts", name]
        if not isinstance(times, Mapping) or set(times) != set(_HOST):
            given = times if isinstance(times, Mapping) else {}
            odd = next((key for key in given if key not in _HOST), None)
            hint = (
                "{host_time: 6 us, launch_latency: 2.5 us}" if odd is None else nearest(odd, _HOST)
            )
            raise SpecError(f"the host of {name} cannot be {times!r}", hint=hint, part=part)
        try:
            return {key: amount(key, times[key], "s") for key in _HOST}
        except SpecError as error:
            problem = f"the host of {name} cannot be {times!r}: {error.problem}"
            raise SpecError(problem, hint=error.hint, part=part) from error

    def _refuse_hosts_times(self, given: Mapping[str, object]) -> None:
        twice = next((key for key in _HOST if given[key] is not None), None)
        if twice is not None:
            hint = "leave one of them out"
            raise SpecError(f"{twice} has no effect beside hosts", hint=hint, part=[twice])

    def _check_device(self, name: str, value: Value) -> None:
        if not look_up_row(name, value, self._devices).flops_per_s:
            raise SpecError(f"{value} has no listed rate", hint="give it one in platforms")
        if self._hosts and value not in self._hosts:
            hint = f"{nearest(value, self._hosts)}; or give it one in hosts"
            raise SpecError(f"{value} has no host", hint=hint)


def _queue_columns(
    operators: Operators, on: OperatorDevice, values: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Return the columns of QUEUE_METRICS of n runs with the same number of launches."""
    kernels_s = _kernels_in_order(operators, on, values)
    count = len(kernels_s)
    merged = count if values["graph"][0] else int(values["fused"][0])
    launched_s = np.add.reduceat(kernels_s, np.arange(0, count, merged), axis=0)
    found, *faster = (
        replace(
            run_queue(launched_s / device, values["host_time"] / host, values["launch_latency"]),
            kernels=np.full(launched_s.shape[1], float(count)),
        )
        for host, device in ((1.0, 1.0), (2.0, 1.0), (1.0, 2.0))
    )
    return found.columns(*faster)


def _kernels_in_order(
    operators: Operators, on: OperatorDevice, values: Mapping[str, Floats]
) -> Floats:
    """Return the times [s] of the k kernels of n runs in order, (k, n)."""
    ones = np.ones(len(values["batch"]))
    runs = OperatorRun(
        batch=values["batch"],
        convolution_passes=ones,
        linear_passes=ones,
        temporal_bandwidth=ones,
    )
    products_s = kernel_times(operators, on, runs, fused=True)
    small = int(values["small_kernels"][0])
    moved = 2.0 * on.recipe.result_bytes * operators.first.results(values["batch"])
    reached = on.calibration.constants.memory_share * on.device.dram_bytes_per_s
    small_s = values["small_kernel_time"] + values["passes"] * moved / reached / max(small, 1)
    places: list[Floats] = []
    for operator in operators.order.tolist():
        places.append(products_s[operator])
        if operators.weighted[operator]:
            places += [small_s[operator]] * small
    return np.stack(places)


@lru_cache(maxsize=64)
def _operators_of(workload: str) -> Operators:
    return operators_of(table_of(workload))
