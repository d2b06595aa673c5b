"""Metrics of a training step: throughput, utilization, energy, cost and carbon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Floats
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.clusters.training.device_memory import TrainingMemoryUse
from dse_evaluators.clusters.training.kernels import FORMATS, Chip, plain
from dse_evaluators.clusters.training.model_state import common_weights, expert_weights
from dse_evaluators.clusters.training.step import EXPOSED, PARTS, TrainingStep
from dse_evaluators.clusters.training.training_plan import TrainingJob, TrainingPlan
from dse_evaluators.clusters.upkeep import Upkeep

_MEMORY_PARTS = ("weights", "gradients", "optimizer", "activations")

_METRICS = (
    Metric(name="step_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="step_time") for part in PARTS),
    Metric(name="exposed", unit="s", goal="minimize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="device_throughput", unit="1/s", goal="maximize"),
    Metric(name="utilization", goal="maximize"),
    Metric(name="devices", goal="minimize"),
    Metric(name="data_traffic", unit="B", goal="minimize"),
    Metric(name="memory", unit="B", goal="minimize"),
    *(Metric(name=f"{part}_memory", unit="B", part_of="memory") for part in _MEMORY_PARTS),
    Metric(name="headroom", unit="B", goal="maximize"),
    Metric(name="host_memory", unit="B", goal="minimize"),
    Metric(name="energy_per_token", unit="J", goal="minimize"),
    Metric(name="cost_per_token", unit="USD", goal="minimize"),
    Metric(name="cost_to_train", unit="USD", goal="minimize"),
    Metric(name="carbon_per_token", unit="kg", goal="minimize"),
    Metric(name="time_to_train", unit="s", goal="minimize"),
    Metric(name="bottleneck", words=PARTS),
    Metric(name="extrapolated", words=("no", "yes")),
)

_IDLE_SHARE = 0.3
"""Power of a waiting device, as a share of its power limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCostModel:
    """Training job with its device and prices, from which cost metrics are computed.

    ``tokens`` are those of the complete training.
    """

    job: TrainingJob
    device: Device
    chips: Mapping[str, Chip]
    upkeep: Upkeep
    tokens: float | None

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Names of the metrics that can be computed; e.g. energy needs the device's power limit."""
        return tuple(metric for metric in _METRICS if metric.name not in self.absent_metrics)

    @property
    def absent_metrics(self) -> dict[str, tuple[str, str]]:
        """Why some metrics cannot be computed, and a remedy, by metric."""
        found: dict[str, tuple[str, str]] = {}
        if self.tokens is None:
            reason = "the number of tokens of the training is not given"
            names = ("time_to_train", "cost_to_train")
            found |= dict.fromkeys(names, (reason, "tokens: 300e9"))
        if not self.upkeep.priced:
            names = ("cost_per_token", "cost_to_train")
            found |= dict.fromkeys(names, self.upkeep.lacks_price)
        if self.device.power_limit_w is None:
            reason = f"the power limit of {self.device.name} is unknown"
            mend = f"device: {{like: {self.device.name}, power_limit: 300 W}}"
            names = ("energy_per_token", "carbon_per_token")
            found |= dict.fromkeys(names, (reason, mend))
        return found


def metrics(
    account: TrainingCostModel,
    plan: TrainingPlan,
    took: TrainingStep,
    kept: TrainingMemoryUse,
    traffic: Floats,
) -> dict[str, Floats]:
    """Return throughput, utilization, energy, cost and other metrics of n training plans.

    Args:
        account: job, device and costs.
        plan: the parallel layouts.
        took: seconds of a step, by cause (compute, communication, bubble and others).
        kept: bytes on the fullest device, by use (weights, gradients and others).
        traffic: bytes that a device sends to replicas in a step, (n,).
    """
    parts = {part: getattr(took, f"{part}_s") for part in PARTS}
    total_s = _sum(list(parts.values()))
    job, chips = account.job, account.chips
    tokens = plan.global_batch * job.sequence
    flops = model_flops(job) * plan.global_batch
    usual = plain(chips)
    rates = np.array([float(np.max(chips.get(name, usual).flops_per_s)) for name in FORMATS])
    # Published MoE results of Megatron Bridge differ widely from this model: docs/training.md.
    guessed = np.array([not chips.get(name, usual).measured for name in FORMATS])
    guessed |= job.model.experts > 1
    form = plan.number_format.astype(np.intp)
    rate = total_s / tokens
    return {
        "step_time": total_s,
        **{f"{part}_time": seconds for part, seconds in parts.items()},
        "exposed": _sum([parts[part] for part in EXPOSED]),
        "throughput": 1.0 / rate,
        "device_throughput": 1.0 / (rate * plan.devices),
        "utilization": flops / (total_s * plan.devices * rates[form]),
        "devices": plan.devices,
        "data_traffic": traffic,
        "memory": kept.total,
        **{f"{part}_memory": getattr(kept, part) for part in _MEMORY_PARTS},
        "headroom": account.device.dram_bytes - kept.total,
        "host_memory": kept.host,
        "bottleneck": _largest(list(parts.values())),
        "extrapolated": guessed[form].astype(np.float64),
        **_upkeep(account, plan, took, total_s),
    }


def model_flops(job: TrainingJob) -> float:
    """Return the floating-point operations of one sequence, forward and backward.

    Source:
        Narayanan et al., SC 2021, equation 3 without recomputation, for any widths; of the
        experts, those that are active for a token.
    """
    model, sequence = job.model, job.sequence
    met = common_weights(model) + model.active_experts * expert_weights(model)
    products = met * model.layers + model.vocabulary * model.hidden
    scores = 2.0 * sequence * model.heads * model.head * model.layers
    return 6.0 * sequence * (products + scores)


def _upkeep(
    account: TrainingCostModel, plan: TrainingPlan, took: TrainingStep, total_s: Floats
) -> dict[str, Floats]:
    """Return energy, cost and carbon per token, and the training time, as far as computable."""
    upkeep, power_w = account.upkeep, account.device.power_limit_w
    tokens = plan.global_batch * account.job.sequence
    held_s = plan.devices * total_s / tokens
    found = dict[str, Floats]()
    if power_w is not None:
        busy_s = took.compute_s + took.recompute_s
        drawn_w = plan.devices * power_w
        drawn_j = drawn_w * (_IDLE_SHARE * total_s + (1.0 - _IDLE_SHARE) * busy_s) / tokens
        found["energy_per_token"] = drawn_j
        made_kg = upkeep.embodied_share_kg(held_s)
        found["carbon_per_token"] = upkeep.operational_kg(drawn_j) + made_kg
    if upkeep.priced:
        found["cost_per_token"] = upkeep.dollars(held_s)
    if account.tokens is not None:
        found["time_to_train"] = account.tokens * total_s / tokens
        if upkeep.priced:
            found["cost_to_train"] = account.tokens * found["cost_per_token"]
    return found


def _sum(columns: list[Floats]) -> Floats:
    total = columns[0].copy()
    for column in columns[1:]:
        total += column
    return total


def _largest(columns: list[Floats]) -> Floats:
    """Return the index of the largest of several arrays at each position, (n,); first on ties.

    The values must not be negative.
    """
    most, place = columns[0].copy(), np.zeros(columns[0].shape)
    for at, column in enumerate(columns[1:], start=1):
        if column.any():
            np.copyto(place, float(at), where=column > most)
            np.maximum(most, column, out=most)
    return place
