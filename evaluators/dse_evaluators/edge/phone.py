"""Evaluator ``edge.phone``: a language model that answers on a phone until it gets too warm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.alike import infeasible
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading
from dse_evaluators.workloads.own.own_workload import declare_workload

_INPUTS: Mapping[str, Reading] = {
    "weight_bits": NumberInput(0.1, 64),
    "cache_bits": NumberInput(0.1, 64, default=16.0),
    "bandwidth": NumberInput(1, 1e15, "B/s"),
    "mac_rate": NumberInput(1, 1e18, "1/s"),
    "memory": NumberInput(1, 1e15, "B"),
    "power": NumberInput(1e-6, 1e6, "W"),
    "throttled_power": NumberInput(0, 1e6, "W"),
    "throttled_speed": NumberInput(1e-3, 1),
    "thermal_resistance": NumberInput(0, 1e6, "K/W"),
    "time_constant": NumberInput(1e-3, 1e9, "s"),
    "heating_limit": NumberInput(1e-3, 1e4, "K"),
    "battery": NumberInput(1e-6, 1e15, "J"),
}

_METRICS = (
    Metric(name="speed", unit="1/s", goal="maximize"),
    Metric(name="sustained_speed", unit="1/s", goal="maximize"),
    Metric(name="sustained_share", goal="maximize"),
    Metric(name="cool_time", unit="s", goal="maximize"),
    Metric(name="energy_per_token", unit="J", goal="minimize"),
    Metric(name="tokens_per_charge", goal="maximize"),
    Metric(name="read_bytes", unit="B", goal="minimize"),
    Metric(name="memory_need", unit="B", goal="minimize"),
    Metric(name="bottleneck", words=("memory", "compute")),
)


class Phone(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Tokens a second of a language model on a phone, at first and after it has warmed up.

    A token reads all weights and the KV cache once: its time is the longer of these bytes over the
    bandwidth and of the products over ``mac_rate``. The phone warms up towards its power times its
    thermal resistance; at ``heating_limit`` above the surroundings it throttles, and from then on
    it runs at full speed for the share of the time that keeps it at the limit. ``cool_time`` is the
    time until the phone throttles, undefined if it never throttles. A model that exceeds the memory
    is infeasible.

    Args:
        workload: a model that generates a token, as ``llama2-7b:decode=512``, or a model of yours,
            as ``./llama:decode=512``; see ``docs/workloads.md``.

    Inputs:
        weight_bits: bits of a weight with its share of the scales, such as 4.5.
        cache_bits: bits of a key or value element with its share of the scales.
        bandwidth: bandwidth of the memory that is reached.
        mac_rate: multiply-accumulates a second that are reached.
        memory: memory that the model may use.
        power: power of the phone when it generates at full speed.
        throttled_power: power of the phone when it is throttled.
        throttled_speed: speed of the throttled phone over the full speed.
        thermal_resistance: warming in K for each W in the steady state.
        time_constant: time constant of the warming.
        heating_limit: warming at which the phone throttles.
        battery: energy of a full battery.

    Limits:
        One thermal mass. Activations, the prompt, and the time of everything but weights, cache and
        products are left out. Parameters outside of matrix products count for memory only.

    Error:
        Not validated: no phone was available. All figures of the phone are the user's. With
        llama.cpp on a server's processor, the time of a token over its bytes differed by up to a
        factor of 2.5 between formats of the weights (``studies/reproductions/melt.yaml``).

    Source:
        Laskaridis et al.: MELTing Point, 2024: generation is limited by memory bandwidth, and
        continuous generation by heat. Warming: Newton's law of cooling.

    Example:
        options:
          workload: llama2-7b:decode=512
          bandwidth: 30 GB/s
          mac_rate: 1 THz
          memory: 6 GB
          power: 8 W
          throttled_power: 4 W
          throttled_speed: 0.6
          thermal_resistance: 5
          time_constant: 300 s
          heating_limit: 25
          battery: 60 kJ
        parameters: {weight_bits: [3.5, 4.5, 6.5], cache_bits: [8, 16]}

    Raises:
        SpecError: an option has an invalid value, or the model cannot be read.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = "llama2-7b:decode=512"
    weight_bits: float | None = None
    cache_bits: float | None = None
    bandwidth: float | str | None = None
    mac_rate: float | str | None = None
    memory: float | str | None = None
    power: float | str | None = None
    throttled_power: float | str | None = None
    throttled_speed: float | None = None
    thermal_resistance: float | str | None = None
    time_constant: float | str | None = None
    heating_limit: float | str | None = None
    battery: float | str | None = None

    def __post_init__(self) -> None:
        self._workload = declare_workload(self, self.workload)
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats], /) -> Metrics:
        """Return the metrics of n designs; a model that exceeds the memory is infeasible."""
        table = self._workload.table
        cached = sum(
            one.weights_per_filter * one.filters * one.copies
            for one in table.layers
            if not one.weighted
        )
        cache_b = cached * inputs["cache_bits"] / 8
        read_b = table.weights * inputs["weight_bits"] / 8 + cache_b
        need_b = table.parameters * inputs["weight_bits"] / 8 + cache_b
        memory_s, compute_s = read_b / inputs["bandwidth"], table.macs / inputs["mac_rate"]
        speed = 1 / np.maximum(memory_s, compute_s)
        full = _share_at_full_speed(inputs)
        slow = inputs["throttled_speed"]
        kept = full + (1 - full) * slow
        power_w = full * inputs["power"] + (1 - full) * inputs["throttled_power"]
        energy_j = power_w / (kept * speed)
        cool_s = _time_until_limit(inputs)
        never = np.flatnonzero(np.isinf(cool_s)).tolist()
        memory_b = inputs["memory"]
        return Metrics(
            columns={
                "speed": speed,
                "sustained_speed": kept * speed,
                "sustained_share": kept,
                "cool_time": cool_s,
                "energy_per_token": energy_j,
                "tokens_per_charge": inputs["battery"] / energy_j,
                "read_bytes": read_b,
                "memory_need": need_b,
                "bottleneck": (compute_s > memory_s).astype(float),
            },
            failures=infeasible(
                need_b > memory_b,
                lambda row: f"it needs {need_b[row]:.3g} B of the {memory_b[row]:.3g} B of memory",
            ),
            undefined={"cool_time": dict.fromkeys(never, "the phone never throttles")},
        )


def _share_at_full_speed(inputs: Mapping[str, Floats]) -> Floats:
    """Return the share of time at full speed in the steady state, (n,)."""
    full_k = inputs["power"] * inputs["thermal_resistance"]
    slow_k = inputs["throttled_power"] * inputs["thermal_resistance"]
    limit_k = inputs["heating_limit"]
    hotter = full_k > np.maximum(slow_k, limit_k)
    between = (limit_k - slow_k) / np.where(hotter, full_k - slow_k, 1.0)
    return np.where(full_k <= limit_k, 1.0, np.where(hotter, np.clip(between, 0, 1), 0.0))


def _time_until_limit(inputs: Mapping[str, Floats]) -> Floats:
    """Return the time [s] at full speed until the limit is reached, (n,); infinite for never."""
    full_k = inputs["power"] * inputs["thermal_resistance"]
    share = np.divide(
        inputs["heating_limit"], full_k, out=np.full_like(full_k, np.inf), where=full_k > 0
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        cool_s = -inputs["time_constant"] * np.log1p(-share)
    return np.where(share < 1, cool_s, np.inf)
