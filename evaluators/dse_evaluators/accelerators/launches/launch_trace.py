"""Launches of kernels in a trace of PyTorch's profiler, with what the host does between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from dse.errors import SpecError
from dse_evaluators.accelerators.devices.profiler_trace import LAUNCHES, read_events

_ACTIVITIES = ("kernel", "gpu_memcpy", "gpu_memset")
_SYNCHRONIZES = "Synchronize"
_STEP = "ProfilerStep#"
_HINT = "torch.profiler.profile(activities=[CPU, CUDA]), exported by export_chrome_trace"
_MICRO = 1e-6

Stream = tuple[Any, Any]
"""Device and stream of a kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A kernel, copy or fill that the host launches; times in seconds.

    Attributes:
        host_s: time of the host since its previous event.
        stream: device and stream.
        kernel_s: time on the device.
    """

    host_s: float
    stream: Stream
    kernel_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Wait of the host until the work of a stream, or of all, has ended; times in seconds.

    Attributes:
        host_s: time of the host since its previous event.
        stream: the stream; ``None`` for all.
        return_s: time of the host from the end of that work until the call returns.
    """

    host_s: float
    stream: Stream | None
    return_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTrace:
    """Events of the host in order, and what was measured.

    Attributes:
        events: launches and waits.
        busy_s: time from the begin until each stream has ended what was launched before.
        launch_s: time from a launch to its kernel on an idle stream: the median.
        latency_s: time from the first operator to the end of the last kernel.
        tklqt_s: sum of the times from each launch to its kernel.
        kernel_s: sum of the times of the kernels.
        launches: number of kernels, copies and fills.
    """

    events: tuple[Launch | Wait, ...]
    busy_s: Mapping[Stream, float]
    launch_s: float
    latency_s: float
    tklqt_s: float
    kernel_s: float
    launches: int


@dataclass(frozen=True, slots=True)
class _Call:
    """Call of the host, with the activity on the device that it launches, if any; microseconds."""

    begin: float
    end: float
    stream: Stream | None = None
    runs_from: float = 0.0
    runs_until: float = 0.0


def read_launches(path: Path) -> LaunchTrace:
    """Return the launches of a trace, of its last step if it has steps.

    Args:
        path: trace as JSON, which may be compressed by gzip.

    Raises:
        SpecError: the file is not a trace of the profiler, or no launch has a kernel in it.

    Source:
        Vellaisamy et al.: Characterizing and Optimizing LLM Inference Workloads on CPU-GPU Coupled
        Architectures, 2025, for the metrics; pytorch/kineto, README of the trace format:
        ``correlation`` joins a launch and its kernel.
    """
    events = read_events(path)
    try:
        calls = sorted(_calls(events), key=lambda call: call.begin)
        launched = [call.begin for call in calls if call.stream is not None]
        if not launched:
            raise SpecError(f"{path}: no launch has a kernel on a device", hint=_HINT)
        begin, end = _last_step(events, launched)
        within = [call for call in calls if begin <= call.begin <= end]
        operators = [float(one["ts"]) for one in events if one.get("cat") == "cpu_op"]
    except (KeyError, TypeError, ValueError) as error:
        problem = f"{path}: an event has a wrong or missing time: {error}"
        raise SpecError(problem, hint=_HINT) from error
    first = within[0].begin
    first = min([first, *(one for one in operators if begin <= one <= end)])
    before = [call for call in calls if call.begin < within[0].begin]
    return _trace(within, before, first, _launch_micros(calls))


def _last_step(
    events: Sequence[Mapping[str, Any]], launched: Sequence[float]
) -> tuple[float, float]:
    """Return begin and end [us] of the last step that launches; of everything without steps."""
    steps = [
        (float(one["ts"]), float(one["ts"]) + float(one["dur"]))
        for one in events
        if one.get("cat") == "user_annotation" and str(one.get("name")).startswith(_STEP)
    ]
    launching = [
        (begin, end) for begin, end in steps if any(begin <= one <= end for one in launched)
    ]
    return max(launching, default=(float("-inf"), float("inf")))


def _launch_micros(calls: Sequence[_Call]) -> float:
    """Return the median time [us] from a launch to its kernel on an idle stream.

    Where no stream was idle at a launch, it is the shortest time from a launch to its kernel.
    """
    ends: dict[Stream, float] = {}
    idle, waits = [], []
    for call in calls:
        if call.stream is None:
            continue
        waits.append(call.runs_from - call.begin)
        if ends.get(call.stream, call.begin) <= call.begin:
            idle.append(waits[-1])
        ends[call.stream] = max(ends.get(call.stream, call.begin), call.runs_until)
    return max(median(idle) if idle else min(waits), 0.0)


def _calls(events: Sequence[Mapping[str, Any]]) -> Iterator[_Call]:
    """Yield the calls that launch something on a device, or that wait for it."""
    runs = {
        one["args"]["correlation"]: one
        for one in events
        if str(one.get("cat", "")).lower() in _ACTIVITIES
        and "correlation" in (one.get("args") or {})
    }
    for one in events:
        if str(one.get("cat", "")).lower() not in LAUNCHES:
            continue
        begin = float(one["ts"])
        end = begin + float(one["dur"])
        run = runs.get((one.get("args") or {}).get("correlation"))
        if run is not None:
            starts = float(run["ts"])
            stream = (run.get("pid"), run.get("tid"))
            yield _Call(begin, end, stream, starts, starts + float(run["dur"]))
        elif _SYNCHRONIZES in str(one.get("name")):
            yield _Call(begin, end)


def _trace(
    within: Sequence[_Call], before: Sequence[_Call], first: float, launch_micros: float
) -> LaunchTrace:
    """Return the events of the calls ``within`` a step that begins at ``first``."""
    ends: dict[Stream, float] = {}
    for call in before:
        if call.stream is not None:
            ends[call.stream] = max(ends.get(call.stream, first), call.runs_until)
    busy_s = {stream: max(end - first, 0.0) * _MICRO for stream, end in ends.items()}
    events: list[Launch | Wait] = []
    host, waited = first, 0.0
    for call in within:
        host_s = max(call.begin - host, 0.0) * _MICRO
        host = call.begin
        if call.stream is None:
            done = max([call.begin, *ends.values()])
            events.append(_wait(host_s, None, call.end - done))
            host = call.end
            continue
        waited += call.runs_from - call.begin
        ran_s = (call.runs_until - call.runs_from) * _MICRO
        events.append(Launch(host_s=host_s, stream=call.stream, kernel_s=ran_s))
        ends[call.stream] = max(ends.get(call.stream, first), call.runs_until)
        if call.end >= call.runs_until:  # a copy that blocks
            events.append(_wait(0.0, call.stream, call.end - call.runs_until))
            host = call.end
    launched = [call for call in within if call.stream is not None]
    return LaunchTrace(
        events=tuple(events),
        busy_s=busy_s,
        launch_s=launch_micros * _MICRO,
        latency_s=(max(call.runs_until for call in launched) - first) * _MICRO,
        tklqt_s=waited * _MICRO,
        kernel_s=sum(call.runs_until - call.runs_from for call in launched) * _MICRO,
        launches=len(launched),
    )


def _wait(host_s: float, stream: Stream | None, micros: float) -> Wait:
    return Wait(host_s=host_s, stream=stream, return_s=max(micros, 0.0) * _MICRO)
