"""Queue of kernels between a host that launches them and a device that runs them in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Floats
from dse_evaluators.accelerators.launches.launch_trace import LaunchTrace, Stream, Wait

BOUNDS = ("launch", "device")

QUEUE_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="launches"),
    Metric(name="tklqt", unit="s"),
    Metric(name="launch_time", unit="s", part_of="tklqt"),
    Metric(name="queue_time", unit="s", part_of="tklqt"),
    Metric(name="kernel_time", unit="s"),
    Metric(name="mean_kernel_time", unit="s"),
    Metric(name="idle_time", unit="s", goal="minimize"),
    Metric(name="device_share", goal="maximize"),
    Metric(name="bound", words=BOUNDS),
)
"""Metrics of a queue; ``bound`` is that of host and device which saves more if twice as fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTimes:
    """Times [s] and counts of n runs; each field is (n,)."""

    latency_s: Floats
    launches: Floats
    kernels: Floats
    tklqt_s: Floats
    launch_s: Floats
    """Sum of the launches' times on an idle device."""
    kernel_s: Floats

    def columns(self, faster_host: QueueTimes, faster_device: QueueTimes) -> dict[str, Floats]:
        """Return the columns of QUEUE_METRICS.

        Args:
            faster_host: the same runs with a host of twice the speed.
            faster_device: the same runs with a device of twice the speed.
        """
        queue_s = np.maximum(self.tklqt_s - self.launch_s, 0.0)
        return {
            "latency": self.latency_s,
            "launches": self.launches,
            "tklqt": self.launch_s + queue_s,
            "launch_time": self.launch_s,
            "queue_time": queue_s,
            "kernel_time": self.kernel_s,
            "mean_kernel_time": self.kernel_s / self.kernels,
            "idle_time": np.maximum(self.latency_s - self.kernel_s, 0.0),
            "device_share": self.kernel_s / self.latency_s,
            "bound": (faster_device.latency_s < faster_host.latency_s).astype(float),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes of a trace in n runs; each field is (n,)."""

    host_speed: Floats
    device_speed: Floats
    fused: Floats
    """Kernels in a row of a stream that become one launch."""
    graph: Floats
    """1 where all kernels are launched at once, as a graph."""


def replay(trace: LaunchTrace, changes: Changes) -> QueueTimes:
    """Return the times of a trace with another host, device, or number of launches, (n,) each.

    A kernel begins once its launch has arrived and its stream is idle. A host that waits goes on
    when the work has ended. A kernel that is merged into the one before, or is of a graph, takes no
    time of the host and no launch.
    """
    size = len(changes.host_speed)
    host, launches, tklqt, kernel = (np.zeros(size) for _ in range(4))
    ends = {stream: np.full(size, busy) for stream, busy in trace.busy_s.items()}
    seen: dict[Stream, int] = {}
    for event in trace.events:
        if isinstance(event, Wait):
            host = host + event.host_s / changes.host_speed
            streams = ends.values() if event.stream is None else [ends[event.stream]]
            for end in streams:
                host = np.maximum(host, end)
            host = host + event.return_s / changes.host_speed
            continue
        place = seen.get(event.stream, 0)
        seen[event.stream] = place + 1
        begins = np.where(changes.graph > 0, float(place == 0), place % changes.fused == 0)
        host = host + begins * event.host_s / changes.host_speed
        end = ends.get(event.stream, np.zeros(size))
        start = np.maximum(np.where(begins > 0, host + trace.launch_s, end), end)
        took = event.kernel_s / changes.device_speed
        ends[event.stream] = start + took
        launches, kernel = launches + begins, kernel + took
        tklqt = tklqt + begins * (start - host)
    return QueueTimes(
        latency_s=np.max(np.stack([ends[one] for one in seen]), axis=0),
        launches=launches,
        kernels=np.full(size, float(trace.launches)),
        tklqt_s=tklqt,
        launch_s=launches * trace.launch_s,
        kernel_s=kernel,
    )


def run_queue(kernels_s: Floats, host_s: Floats, launch_s: Floats) -> QueueTimes:
    """Return the times of n runs that launch k kernels, one every ``host_s`` seconds.

    Args:
        kernels_s: time of each kernel, (k, n); those of one launch are summed.
        host_s: time of the host for each launch, (n,).
        launch_s: time from a launch to its kernel on an idle device, (n,).
    """
    count, size = kernels_s.shape
    launched = np.arange(1, count + 1)[:, None] * host_s
    before = np.vstack([np.zeros((1, size)), np.cumsum(kernels_s, axis=0)[:-1]])
    # A kernel begins when its own launch, or that of one before and all since then, is through.
    starts = before + np.maximum.accumulate(launched + launch_s - before, axis=0)
    return QueueTimes(
        latency_s=starts[-1] + kernels_s[-1],
        launches=np.full(size, float(count)),
        kernels=np.full(size, float(count)),
        tklqt_s=(starts - launched).sum(axis=0),
        launch_s=count * launch_s,
        kernel_s=kernels_s.sum(axis=0),
    )
