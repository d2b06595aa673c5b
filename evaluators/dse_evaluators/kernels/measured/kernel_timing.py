"""Check and timing of one compiled kernel: a wrong result is a failure, a right one is timed."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import EvaluationError, PluginError
from dse.evaluation.timing.call_time import time_call
from dse.evaluation.timing.energy_counters import find_counters
from dse_evaluators.generic.options import seconds_of
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import Readings

FORMATS: Mapping[str, type[np.floating[Any]]] = {"float32": np.float32, "float64": np.float64}
C_TYPES = {"float32": "float", "float64": "double"}

COMMON_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="error", goal="minimize"),
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="readings"),
    Metric(name="disturbed", goal="minimize"),
)
_NO_COUNTER = "no energy counter of this machine can be read (RAPL, NVML)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedKernel:
    """Compiled kernel with its inputs, bound to a call that overwrites ``output``.

    ``tolerance`` is the largest deviation from ``expected`` that counts as correct, per element.
    """

    call: Callable[[], object]
    output: NDArray[np.floating[Any]]
    expected: Floats
    tolerance: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingLimits:
    """Precision and time limit of the timing of a kernel, and whether its thread is pinned."""

    precision: float
    limit_s: float
    pin: bool


def limits_of(precision: float, limit: float | str, *, pin: bool) -> TimingLimits:
    """Return the limits that the options of an evaluator state.

    Raises:
        PluginError: an option is invalid.
    """
    if isinstance(precision, bool) or not isinstance(precision, int | float):
        raise PluginError(f"precision is {precision!r}", hint="write a share such as 0.02")
    if not 0 < precision < 1:
        raise PluginError(f"precision is {precision:g}", hint="it must be between 0 and 1")
    if not isinstance(pin, bool):
        raise PluginError(f"pin is {pin!r}", hint="true or false")
    limit_s = seconds_of("limit", limit)
    return TimingLimits(precision=float(precision), limit_s=limit_s, pin=pin)


def measure_kernel(kernel: PreparedKernel, limits: TimingLimits, threads: int) -> Found:
    """Return latency, error, energy (if a counter exists) and number of timings of a kernel.

    The result is checked before and after the timing, since threads may collide in a later call.

    Raises:
        EvaluationError: the result is wrong.
    """
    kernel.output.fill(np.nan)
    kernel.call()
    _check_result(kernel)
    found = time_call(
        kernel.call,
        precision=limits.precision,
        limit_s=limits.limit_s,
        cpus=threads if limits.pin else 0,
    )
    error = _check_result(kernel)
    energy = {"energy": sum(found.energy_j.values())} if found.energy_j else {}
    values = {
        "latency": found.median_s,
        "error": error,
        "readings": float(found.readings),
        "disturbed": float(found.disturbed),
        **energy,
    }
    return Found(values=values, errors={"latency": found.stderr_s})


def measure_kernels(
    batch: Batch,
    provides: Mapping[str, Metric],
    measure: Callable[[Mapping[str, Value]], Found],
) -> Metrics:
    """Measure kernels of several designs, one at a time; an unreadable energy is undefined."""
    uncertain = [name for name in ("latency", "rate") if name in provides]
    found = one_by_one(batch, tuple(provides), measure, uncertain=uncertain)
    absent = np.flatnonzero(np.isnan(found.columns["energy"])).tolist()
    why = _NO_COUNTER if not find_counters() else "other load disturbed all of the measurement"
    reasons = {row: why for row in absent if row not in found.failures}
    return Metrics(
        columns=found.columns,
        spread=found.spread,
        failures=found.failures,
        undefined={"energy": reasons} if reasons else {},
    )


def settings_of(readings: Readings, design: Mapping[str, Value]) -> dict[str, Value]:
    """Return all inputs of a design: its own, those fixed by options, and defaults."""
    return {**readings.defaults, **design, **readings.settled}


def refuse_without_effect(
    design: Mapping[str, Value], names: tuple[str, ...], condition: str
) -> None:
    """Reject inputs without effect in a design, so that equal programs are not timed twice.

    Args:
        design: the inputs of the design.
        names: the inputs that have an effect only under the condition.
        condition: the condition, as a space states it.

    Raises:
        EvaluationError: the design has such an input.
    """
    for name in names:
        if name in design:
            hint = f"write {name}: {{..., when: {condition}}} in the space"
            raise EvaluationError(f"{name} has no effect in this design", hint=hint)


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def rounding_bound(operations: int, number: str) -> float:
    """Return the relative error bound of a sum of products, n u / (1 - n u).

    Source:
        Higham: Accuracy and Stability of Numerical Algorithms, 2nd edition, 2002, lemma 3.1.
    """
    unit = float(np.finfo(FORMATS[number]).eps) / 2 * operations
    return unit / (1 - unit) if unit < 1 else math.inf


def _check_result(kernel: PreparedKernel) -> float:
    """Return the largest error relative to the largest element.

    Raises:
        EvaluationError: an element is farther from the expected one than rounding explains.
    """
    off = np.abs(kernel.output - kernel.expected)
    wrong = ~(off <= kernel.tolerance)  # NaN is wrong
    if wrong.any():
        place = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise EvaluationError(
            f"the kernel computes {np.count_nonzero(wrong)} of {wrong.size} elements wrongly: "
            f"{kernel.output[place]:.9g} instead of {kernel.expected[place]:.9g} at {place}"
        )
    return float(off.max() / max(np.abs(kernel.expected).max(), np.finfo(np.float64).tiny))
