"""Evaluator ``accelerators.traced-launches``: a profiler's trace on another host or device."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.errors import SpecError
from dse_evaluators.accelerators.launches.launch_queue import QUEUE_METRICS, Changes, replay
from dse_evaluators.accelerators.launches.launch_trace import LaunchTrace, read_launches
from dse_evaluators.alike import fix_columns, gather_parts, groups
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import Flag, NumberInput, Reading, Readings, one_of

_INPUTS: Mapping[str, Reading] = {
    "host_speed": NumberInput(1e-3, 1e6, default=1.0),
    "device_speed": NumberInput(1e-3, 1e6, default=1.0),
    "fused": NumberInput(1, 1 << 20, default=1, whole=True),
    "graph": Flag(default=False),
}

_METRICS = (
    *QUEUE_METRICS,
    Metric(name="traced_latency", unit="s"),
    Metric(name="traced_tklqt", unit="s"),
    Metric(name="replay_error", goal="minimize"),
)


class TracedLaunches(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Launches of kernels in traces of yours, replayed with another host, device or fewer launches.

    The total kernel launch and queuing time (``tklqt``) sums the times from each launch to its
    kernel: ``launch_time`` is what the launches take on an idle stream, ``queue_time`` the rest.
    ``bound`` is ``launch`` where a host of twice the speed would shorten the latency more than a
    device of twice the speed. In a trace with steps, the last step counts.

    Args:
        traces: traces of ``torch.profiler`` by name, as JSON or JSON in gzip: ``{b1: b1.json, b8:
            b8.json.gz}``, as ``export_chrome_trace`` writes them.

    Inputs:
        trace: a name of ``traces``.
        host_speed: speed of the host, of which that of the trace is 1.
        device_speed: speed of the device's kernels, of which that of the trace is 1.
        fused: kernels in a row of a stream that become one launch, without saving work on the
            device.
        graph: whether all kernels are launched at once, as a CUDA graph is.

    Limits:
        Streams wait for the host and for their own work, not for events of other streams; times of
        kernels that run beside each other do not change, so that ``device_share`` can exceed 1.
        Threads of the host are one. The latency ends with the last kernel. Profiling slows down the
        host itself.

    Error:
        ``replay_error`` is that of the latency for the trace as it is: 0.0 to 0.6 % on five public
        traces, 10 and 22 % on two (``docs/devices.md``). With other speeds it was not measured.

    Source:
        Vellaisamy et al.: Characterizing and Optimizing LLM Inference Workloads on CPU-GPU Coupled
        Architectures, 2025: the metrics. The replay is this project's own.

    Example:
        options: {traces: {step: step.json}}
        parameters: {host_speed: [1, 2], graph: [false, true]}
        objectives: {latency: minimize}
        files:
          step.json: |
            {"traceEvents": [
              {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
               "ts": 10, "dur": 4, "args": {"correlation": 1}},
              {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7,
               "ts": 17, "dur": 5, "args": {"correlation": 1}},
              {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
               "ts": 20, "dur": 4, "args": {"correlation": 2}},
              {"ph": "X", "cat": "kernel", "name": "softmax", "pid": 0, "tid": 7,
               "ts": 27, "dur": 2, "args": {"correlation": 2}}]}

    Raises:
        SpecError: a trace cannot be read, has no launches with kernels, or an input is invalid.
    """

    user_options: ClassVar[Sequence[str]] = ("traces.*",)

    traces: Mapping[str, str]
    trace: str | None = None
    host_speed: float | None = None
    device_speed: float | None = None
    fused: float | None = None
    graph: bool | None = None

    def __post_init__(self) -> None:
        given: object = self.traces
        if not isinstance(given, Mapping) or not given:
            hint = "as in {b1: b1.json, b8: b8.json.gz}"
            raise SpecError(f"traces cannot be {given!r}", hint=hint, part=["traces"])
        contents = {}
        for name, path in self.traces.items():
            try:
                contents[name] = _hash(Path(path))
                _read(str(path), contents[name])
            except SpecError as error:
                raise SpecError(error.problem, hint=error.hint, part=["traces", name]) from error
        self._contents = contents
        edition = hashlib.sha256(repr(sorted(contents.items())).encode()).hexdigest()[:12]
        self.version = f"{self.version}-{edition}"
        first = next(iter(self.traces)) if len(self.traces) == 1 else None
        table = {**_INPUTS, "trace": one_of(self.traces, first)}
        self.declare(Readings.of(table, self))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs."""
        settled = self.readings.settled
        every = fix_columns(batch, {"trace": settled["trace"]}) if "trace" in settled else batch
        usual = {"trace": next(iter(self.traces))}
        parts = (
            (rows, self._replay(every.take(rows), *name)) for name, rows in groups(every, usual)
        )
        return gather_parts(len(batch), self.provides, parts)

    def _replay(self, batch: Batch, name: str) -> Metrics:
        trace = _read(str(self.traces[name]), self._contents[name])
        changes = Changes(**{key: self.readings.column(key, batch) for key in _INPUTS})
        host = replace(changes, host_speed=2.0 * changes.host_speed)
        device = replace(changes, device_speed=2.0 * changes.device_speed)
        found, *faster = (replay(trace, one) for one in (changes, host, device))
        one = np.ones(1)
        same = replay(trace, Changes(host_speed=one, device_speed=one, fused=one, graph=0 * one))
        error = abs(same.latency_s.item() / trace.latency_s - 1)
        traced = {
            "traced_latency": trace.latency_s,
            "traced_tklqt": trace.tklqt_s,
            "replay_error": error,
        }
        columns = {key: np.full(len(batch), value) for key, value in traced.items()}
        return Metrics(columns={**found.columns(*faster), **columns})


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        hint = "a trace that torch.profiler exported: export_chrome_trace"
        raise SpecError(f"there is no trace {path}", hint=hint) from error


@lru_cache(maxsize=32)
def _read(path: str, content: str) -> LaunchTrace:  # noqa: ARG001 - a changed file is read again
    return read_launches(Path(path))
