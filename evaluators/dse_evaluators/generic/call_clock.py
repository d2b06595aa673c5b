"""Time of a call by wall clock, as ``dse.time_call``, or by processor time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dse.errors import PluginError, nearest
from dse.evaluation.timing.call_time import time_call
from dse.evaluation.timing.median_interval import interval_of_median, median_error
from dse_evaluators.generic.options import seconds_of

CLOCKS = ("wall", "processor")
_WARMUP = 3
_LEAST = 20
_READING_S = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTiming:
    """Settings of a timing: its clock, precision of the median, and time limit."""

    clock: str
    precision: float
    limit_s: float

    @staticmethod
    def of(clock: str, precision: float, limit: float | str) -> CallTiming:
        """Return the timing that the options of an evaluator state.

        Raises:
            PluginError: an option is invalid.
        """
        if clock not in CLOCKS:
            raise PluginError(f"clock cannot be {clock!r}", hint=nearest(str(clock), CLOCKS))
        if not 0 < precision < 1:
            raise PluginError(f"precision is {precision:g}", hint="a share such as 0.02")
        return CallTiming(clock=clock, precision=precision, limit_s=seconds_of("limit", limit))


def time_by(call: Callable[[], object], timing: CallTiming) -> tuple[float, float]:
    """Return the median seconds of a call, and their standard error.

    By processor time, waiting for a processor does not count. The readings are those of
    :func:`dse.time_call`: as many calls as last 1 ms, until the interval of the median is narrow
    enough, or the limit is reached.
    """
    if timing.clock == "wall":
        return time_call(call, precision=timing.precision, limit_s=timing.limit_s).value
    for _ in range(_WARMUP):
        call()
    begun, readings = time.process_time(), list[float]()
    while True:
        start, count = time.process_time(), 0
        while count == 0 or time.process_time() - start < _READING_S:
            call()
            count += 1
        readings.append((time.process_time() - start) / count)
        if len(readings) >= _LEAST:
            taken = np.array(readings)
            narrow = interval_of_median(taken).relative_half_width <= timing.precision
            if narrow or time.process_time() - begun >= timing.limit_s:
                return float(np.median(taken)), median_error(taken)
