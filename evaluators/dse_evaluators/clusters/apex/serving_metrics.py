"""Metrics of a simulated serving run: latency, throughput, energy and memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dse.core.metric import Metric
from dse_evaluators.clusters.apex.apex_plan import ApexPlan
from dse_evaluators.clusters.apex.machine import DvfsDevice
from dse_evaluators.clusters.apex.trace_simulation import ApexResult

TIMES = ("products", "attention", "collectives", "host", "idle")

METRICS = (
    Metric(name="makespan", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="makespan") for part in TIMES),
    Metric(name="tpot", unit="s", goal="minimize"),
    Metric(name="tpot_counted", unit="s", goal="minimize"),
    Metric(name="tpot_p95", unit="s", goal="minimize"),
    Metric(name="ttft", unit="s", goal="minimize"),
    Metric(name="ttft_p95", unit="s", goal="minimize"),
    Metric(name="attainment", goal="maximize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="base_energy", unit="J", part_of="energy"),
    Metric(name="work_energy", unit="J", part_of="energy"),
    Metric(name="parameters", unit="B", goal="minimize"),
    Metric(name="capacity", goal="maximize"),
    Metric(name="evictions", goal="minimize"),
    Metric(name="bottleneck", words=TIMES),
    Metric(name="extrapolated", words=("no", "yes")),
)


class ServiceLimits(NamedTuple):
    """Service-level limits: longest time to first token and longest time per output token."""

    ttft_s: float
    tpot_s: float


def outcome(
    plan: ApexPlan, ran: ApexResult, machine: DvfsDevice, clock_hz: float, limits: ServiceLimits
) -> dict[str, float]:
    """Return all metrics of a simulated serving plan except ``extrapolated``."""
    devices = plan.cluster.devices
    parts = {f"{part}_time": float(getattr(ran.slowest, f"{part}_s")) for part in TIMES}
    base_j = devices * machine.idle_w * ran.makespan_s
    work_j = devices / plan.dp * ran.busy_s * machine.busy_w(clock_hz)
    kept = (ran.first_s <= limits.ttft_s) & (ran.gaps_s <= limits.tpot_s)
    return {
        "makespan": ran.makespan_s,
        **parts,
        "tpot": ran.tpot_s,
        "tpot_counted": float(np.sum(ran.writing_s) / np.sum(ran.answers)),
        "tpot_p95": float(np.quantile(ran.gaps_s, 0.95)),
        "ttft": float(np.mean(ran.first_s)),
        "ttft_p95": float(np.quantile(ran.first_s, 0.95)),
        "attainment": float(np.mean(kept)),
        "throughput": float(np.sum(ran.answers)) / ran.makespan_s,
        "energy": base_j + work_j,
        "base_energy": base_j,
        "work_energy": work_j,
        "parameters": plan.parameter_bytes,
        "capacity": float(plan.capacity),
        "evictions": float(ran.evictions),
        "bottleneck": float(np.argmax(list(parts.values()))),
    }
