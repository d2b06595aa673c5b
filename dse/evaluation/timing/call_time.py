"""Timing of a call on this machine, repeated until its median is known to a stated precision."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import repeat

import numpy as np

from dse.core.values import Floats
from dse.errors import EvaluationError
from dse.evaluation.timing.energy_counters import EnergyCounter, find_counters, read_counters
from dse.evaluation.timing.interference import LoadSample, load_limit, sample_load, waited_ns
from dse.evaluation.timing.median_interval import interval_of_median, median_error
from dse.evaluation.timing.pinning import pinned
from dse.evaluation.timing.processor_clocks import (
    clock_ends,
    sample_clocks,
    throttling_between,
)

_READING_S = 1e-3
"""Least duration of a reading: short against the time slices of a scheduler, 3 ms and more, so that
some readings are free of interruptions although another program shares the processor."""

_WINDOW_S = 0.25
"""Least time over which other load is judged; the system counts it in steps of 10 ms."""

_WAITED_SHARE = 0.02
"""Share of a reading's duration from which on waiting for a processor counts as interference."""

_PATIENCE = 0.25
"""Share of the time limit after which disturbed readings are used, too."""

_NORMAL_95 = 1.96


class Disturbance(IntEnum):
    """Disturbance of one timing reading by other programs."""

    NONE = 0
    LOADED = 1
    """Other processes used processors; shared caches and clocks may have slowed the reading."""
    PREEMPTED = 2
    """A thread of this process waited for a processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTime:
    """Seconds per call: the median of the readings, its 95 % interval and its standard error.

    ``readings`` counts the readings that the numbers are computed from, ``disturbed`` the readings
    that other load affected. If there were too few undisturbed readings, ``is_quiet`` is false: the
    numbers are then computed from disturbed readings, too, and the interval contains the interval
    of all readings. ``is_precise`` is whether the interval is as narrow as requested. With fewer
    than six readings the interval is from zero to infinity.

    ``energy_j`` is the energy of a call by counter (``package-0``, ``gpu-0``), including the idle
    power of the package or device; it is empty where no counter can be read. ``clock_hz`` has the
    lowest and highest clock seen. ``throttled`` is the number of throttling events of the
    processors, and of devices that were found throttled; ``None`` where it is not reported.
    ``cpus`` are the processors that the calling thread was pinned to.
    """

    median_s: float
    low_s: float
    high_s: float
    stderr_s: float
    readings: int
    disturbed: int
    calls: int
    is_quiet: bool
    is_precise: bool
    energy_j: Mapping[str, float] = field(default_factory=dict)
    clock_hz: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    throttled: int | None = None
    cpus: tuple[int, ...] = ()

    @property
    def value(self) -> tuple[float, float]:
        """Median and standard error, as evaluators return a metric."""
        return self.median_s, self.stderr_s


def time_call(
    call: Callable[[], object],
    *,
    precision: float = 0.01,
    warmup: int = 3,
    least: int = 10,
    most: int = 1000,
    limit_s: float = 10.0,
    cpus: int = 0,
) -> CallTime:
    """Time a call until the median is precise, without readings that other programs disturb.

    A reading is as many calls as last 1 ms, at least one. Readings end when the 95 % interval of
    the median of undisturbed readings is narrow enough, or at a limit. A reading is disturbed if a
    thread of this process had to wait for a processor, or if other processes used a quarter of a
    core or more in the surrounding quarter of a second; a disturbed reading is repeated. After a
    quarter of ``limit_s`` of disturbed readings, disturbed readings are used, too.

    Processor time of other processes that work for the call, such as a server, counts as other
    load. Garbage collection is off meanwhile. The timing takes a quarter of a second at least, or
    ``limit_s`` if that is shorter.

    Args:
        call: the code; its result is dropped.
        precision: largest distance from the median to an end of its interval, relative to the
            median.
        warmup: calls before the first reading.
        least: undisturbed readings to take at least.
        most: undisturbed readings to take at most.
        limit_s: seconds of readings after which none is begun.
        cpus: number of processors to pin the calling thread to; 0 does not pin it.

    Raises:
        EvaluationError: a limit is invalid.

    Source:
        Hoefler, Belli: Scientific Benchmarking of Parallel Computing Systems, 2015: intervals of
        medians, and repeats until they are narrow (rules 5 and 8).

    Example:
        >>> from dse import time_call
        >>> time_call(lambda: sum(range(1000)), precision=0.5).median_s > 0
        True
    """
    if not (precision > 0 and limit_s > 0 and warmup >= 0 and 1 <= least <= most and cpus >= 0):
        raise EvaluationError(
            "time_call needs precision and limit_s above zero, warmup and cpus of at least 0, and "
            f"1 <= least <= most; got {precision=}, {limit_s=}, {warmup=}, {least=}, {most=}, "
            f"{cpus=}"
        )
    with pinned(cpus) as held, _without_garbage_collection():
        session = _Session(call, warmup=warmup, window_s=min(_WINDOW_S, limit_s))
        while not session.is_done(precision, least, most, limit_s):
            session.read_window()
    return session.result(precision, least, held)


class _Session:
    """Readings of one call, taken window by window."""

    def __init__(self, call: Callable[[], object], *, warmup: int, window_s: float) -> None:
        self._call = call
        self._window_s = window_s
        self._counters = find_counters()
        self._clocks = [sample_clocks()]
        self._load = sample_load()
        for _ in range(warmup):
            call()
        self._loop = _calls_per_reading(call)
        self._began_s = time.perf_counter()
        self._seconds: list[float] = []
        self._kinds: list[Disturbance] = []
        self._lost_s = 0.0
        self._energy = _EnergyUse(self._counters)

    def read_window(self) -> None:
        """Take readings for the length of a window, and judge which of them were disturbed."""
        energy = read_counters(self._counters)
        begun_s = self._load.at_s if self._load else time.perf_counter()
        kinds: list[Disturbance] = []
        while not kinds or time.perf_counter() - begun_s < self._window_s:
            seconds, is_preempted = _take_reading(self._call, self._loop)
            self._seconds.append(seconds / self._loop)
            kinds.append(Disturbance.PREEMPTED if is_preempted else Disturbance.NONE)
        is_loaded, self._load = _judge_load(self._load)
        if is_loaded:
            kinds = [max(kind, Disturbance.LOADED) for kind in kinds]
        else:
            self._energy.add(energy, calls=len(kinds) * self._loop)
        taken = self._seconds[len(self._kinds) :]
        pairs = zip(taken, kinds, strict=True)
        self._lost_s += self._loop * sum(seconds for seconds, kind in pairs if kind)
        self._kinds += kinds
        self._clocks.append(sample_clocks())

    def is_done(self, precision: float, least: int, most: int, limit_s: float) -> bool:
        quiet = self._up_to(Disturbance.NONE)
        if len(quiet) >= least:
            width = interval_of_median(quiet).relative_half_width
            if width <= precision or len(quiet) >= most:
                return True
        spent_s = time.perf_counter() - self._began_s
        return bool(self._kinds) and (spent_s >= limit_s or self._lost_s >= _PATIENCE * limit_s)

    def result(self, precision: float, least: int, cpus: tuple[int, ...]) -> CallTime:
        used = next(
            (taken for kind in Disturbance if len(taken := self._up_to(kind)) >= least),
            np.array(self._seconds),
        )
        disturbed = sum(kind > Disturbance.NONE for kind in self._kinds)
        is_quiet = len(used) == len(self._kinds) - disturbed
        interval, error_s = interval_of_median(used), median_error(used)
        if not is_quiet:
            interval = interval.spanning(interval_of_median(np.array(self._seconds)))
            half_s = interval.relative_half_width * interval.median
            error_s = max(error_s, half_s / _NORMAL_95) if np.isfinite(half_s) else error_s
        return CallTime(
            median_s=interval.median,
            low_s=max(interval.low, 0.0),
            high_s=interval.high,
            stderr_s=error_s,
            readings=len(used),
            disturbed=disturbed,
            calls=len(self._seconds) * self._loop,
            is_quiet=is_quiet,
            is_precise=is_quiet and interval.relative_half_width <= precision,
            energy_j=self._energy.per_call_j(),
            clock_hz=clock_ends(self._clocks),
            throttled=throttling_between(self._clocks),
            cpus=cpus,
        )

    def _up_to(self, worst: Disturbance) -> Floats:
        pairs = zip(self._seconds, self._kinds, strict=True)
        return np.array([seconds for seconds, kind in pairs if kind <= worst])


class _EnergyUse:
    """Energy of the undisturbed windows, and the number of calls in them."""

    def __init__(self, counters: tuple[EnergyCounter, ...]) -> None:
        self._counters = counters
        self._used_j = dict.fromkeys((counter.name for counter in counters), 0.0)
        self._calls = 0

    def add(self, before: Mapping[str, float], *, calls: int) -> None:
        """Add the energy since ``before``, in which the call was made ``calls`` times."""
        after = read_counters(self._counters)
        self._calls += calls
        for counter in self._counters:
            name = counter.name
            self._used_j[name] += counter.used_j(before[name], after[name])

    def per_call_j(self) -> dict[str, float]:
        """Return the energy of a call by counter; empty if no window was undisturbed."""
        if not self._calls:
            return {}
        return {name: used_j / self._calls for name, used_j in self._used_j.items()}


def _calls_per_reading(call: Callable[[], object]) -> int:
    calls = 1
    while True:
        seconds, _ = _take_reading(call, calls)
        if seconds >= _READING_S:
            return calls
        calls = max(2 * calls, min(int(calls * _READING_S / max(seconds, 1e-7)), 10 * calls))


def _take_reading(call: Callable[[], object], calls: int) -> tuple[float, bool]:
    """Return the seconds of a number of calls, and whether a thread waited for a processor."""
    waited_before, switches_before = waited_ns(), _switches()
    start = time.perf_counter_ns()
    for _ in repeat(None, calls):
        call()
    spent_ns = time.perf_counter_ns() - start
    waited = waited_ns()
    if waited is None or waited_before is None:
        return spent_ns * 1e-9, _switches() > switches_before
    return spent_ns * 1e-9, waited - waited_before > _WAITED_SHARE * spent_ns


def _switches() -> int:
    """Return how often a thread of this process lost its processor; 0 where it is not counted."""
    try:
        import resource
    except ImportError:  # Windows has no such module
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _judge_load(before: LoadSample | None) -> tuple[bool, LoadSample | None]:
    """Return whether other processes loaded the machine since a sample, and a new sample."""
    now = sample_load()
    if before is None or now is None:
        return False, now
    return now.foreign_cores(before) >= load_limit(), now


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
