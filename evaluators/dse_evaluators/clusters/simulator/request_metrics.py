"""Metrics of n designs, computed from their simulated requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Floats, Ints, Mask
from dse_evaluators.clusters.simulator.gaps import quantile

TIMES = ("waiting", "reading", "writing")
ENERGIES = ("base", "compute", "memory")
_WAITS = ("ttft", "tpot", "total_time")

METRICS = (
    *(
        Metric(name=f"{name}{what}", unit="s", goal="minimize")
        for name in _WAITS
        for what in ("", "_p50", "_p95", "_p99")
    ),
    *(Metric(name=f"{part}_time", unit="s", part_of="total_time") for part in TIMES),
    *(Metric(name=f"gap_{what}", unit="s", goal="minimize") for what in ("p95", "p99")),
    Metric(name="request_rate", unit="1/s", goal="maximize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="device_throughput", unit="1/s", goal="maximize"),
    Metric(name="goodput", unit="1/s", goal="maximize"),
    Metric(name="device_goodput", unit="1/s", goal="maximize"),
    Metric(name="attainment", goal="maximize"),
    Metric(name="preemptions", goal="minimize"),
    Metric(name="queue", goal="minimize"),
    Metric(name="running"),
    Metric(name="utilization"),
    Metric(name="energy_per_token", unit="J", goal="minimize"),
    *(Metric(name=f"{part}_energy", unit="J", part_of="energy_per_token") for part in ENERGIES),
    Metric(name="bottleneck", words=TIMES),
)

FORMER_METRICS = {f"first_token{what}": f"ttft{what}" for what in ("", "_p50", "_p95", "_p99")}


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyLimits:
    """Latency limits of a request, such as the time to the first token; infinite if not given."""

    ttft_s: float
    ttft_s_per_token: float
    """Addition to the limit of the time to first token, per prompt token."""
    tpot_s: float
    pace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """Simulated times of the requests of n designs, (n, r), and totals over their devices, (n,)."""

    arrival: Floats  # (n, r), seconds, as the next three
    started: Floats
    first: Floats
    finish: Floats
    slowest: Floats  # (n, r), seconds; (n, 0) if no moving average was kept
    tokens: Ints  # (n, bins), histogram of token gaps
    devices: Floats
    copies: Floats
    busy_s: Floats
    """Seconds in iterations, summed over all copies."""
    texts_s: Floats
    """Integral of the running sequences over time [s]."""
    compute_j: Floats
    memory_j: Floats
    base_w: Floats
    evictions: Floats
    largest: Floats
    """Tokens of the largest iteration."""

    @property
    def span_s(self) -> Floats:
        """Seconds from the start of the simulation to the last token, (n,)."""
        return self.finish.max(axis=1)


def metrics(
    played: SimulationResult, prompt: Ints, answer: Ints, limits: LatencyLimits
) -> Mapping[str, Floats]:
    """Compute latencies, throughput, goodput, energy etc. of n designs, each (n,).

    Args:
        played: the simulated requests.
        prompt: input tokens of each request, (r,).
        answer: output tokens of each request, (r,).
        limits: latency limits that define goodput.
    """
    span_s, tokens = played.span_s, float(answer.sum())
    first_s = played.first - played.arrival
    after_s = (played.finish - played.first) / np.maximum(answer - 1, 1)
    fine = (first_s <= limits.ttft_s + limits.ttft_s_per_token * prompt) & (
        after_s <= limits.tpot_s
    )
    if played.slowest.shape[1]:
        fine &= played.slowest <= limits.pace_s
    goodput = fine.sum(axis=1) / span_s
    return {
        **_spread("ttft", first_s, np.ones(len(prompt), dtype=bool)),
        **_spread("tpot", after_s, answer > 1),
        **_spread("total_time", played.finish - played.arrival, np.ones(len(prompt), dtype=bool)),
        **_parts(played),
        **{f"gap_p{at}": quantile(played.tokens, at / 100.0) for at in (95, 99)},
        "request_rate": len(prompt) / span_s,
        "throughput": tokens / span_s,
        "device_throughput": tokens / span_s / played.devices,
        "goodput": goodput,
        "device_goodput": goodput / played.devices,
        "attainment": fine.mean(axis=1),
        "preemptions": played.evictions,
        "queue": (played.started - played.arrival).sum(axis=1) / span_s,
        "running": played.texts_s / span_s,
        "utilization": played.busy_s / (played.copies * span_s),
        **_energies(played, tokens),
    }


def _spread(name: str, values: Floats, among: Mask) -> dict[str, Floats]:
    """Return the mean and quantiles of a time over some requests; 0 without any request."""
    some = np.ascontiguousarray(values[:, among])
    if not some.shape[1]:
        some = np.zeros((len(values), 1))
    found = {f"{name}_p{at}": np.quantile(some, at / 100.0, axis=1) for at in (50, 95, 99)}
    return {name: some.mean(axis=1), **found}


def _parts(played: SimulationResult) -> dict[str, Floats]:
    ends = (played.arrival, played.started, played.first, played.finish)
    parts = [(b - a).mean(axis=1) for a, b in pairwise(ends)]
    return {
        **{f"{name}_time": part for name, part in zip(TIMES, parts, strict=True)},
        "bottleneck": np.argmax(np.stack(parts), axis=0).astype(np.float64),
    }


def _energies(played: SimulationResult, tokens: float) -> dict[str, Floats]:
    parts = {
        "base": played.base_w * played.devices * played.span_s,
        "compute": played.compute_j,
        "memory": played.memory_j,
    }
    return {
        "energy_per_token": sum(parts.values(), np.zeros_like(played.busy_s)) / tokens,
        **{f"{name}_energy": joules / tokens for name, joules in parts.items()},
    }
