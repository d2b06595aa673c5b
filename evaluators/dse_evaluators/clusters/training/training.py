"""The evaluator ``clusters.training``: a step of training a transformer on many devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Fault, Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.chips import chip_of
from dse_evaluators.clusters.rules import Rule, told
from dse_evaluators.clusters.systems import system_of
from dse_evaluators.clusters.training.block_time import SEEN_BY_KERNELS, block
from dse_evaluators.clusters.training.memory import Memory, block_weights, memory
from dse_evaluators.clusters.training.plan import RECOMPUTED, Job, Plan, infeasible
from dse_evaluators.clusters.training.step import Step, step
from dse_evaluators.readings import check_readings, flag, number, word
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS, Transformer

_STEP_PARTS = ("compute", "recompute", "tensor", "bubble", "pipeline", "data", "optimizer")
_MEMORY_PARTS = ("weights", "gradients", "optimizer", "activations")

_METRICS = (
    Metric(name="step_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="step_time") for part in _STEP_PARTS),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="device_throughput", unit="1/s", goal="maximize"),
    Metric(name="utilization", goal="maximize"),
    Metric(name="devices", goal="minimize"),
    Metric(name="memory", unit="B", goal="minimize"),
    *(Metric(name=f"{part}_memory", unit="B", part_of="memory") for part in _MEMORY_PARTS),
    Metric(name="headroom", unit="B", goal="maximize"),
    Metric(name="energy_per_token", unit="J", goal="minimize"),
    Metric(name="bottleneck", words=_STEP_PARTS),
)

_IDLE_SHARE = 0.3
"""Of the power limit, what a device draws that waits."""


class _Knob(NamedTuple):
    default: float | None
    words: tuple[str, ...] = ()


# The order is that of Plan.
_KNOBS: Mapping[str, _Knob] = {
    "tp": _Knob(None),
    "pp": _Knob(None),
    "dp": _Knob(None),
    "microbatch": _Knob(None),
    "interleave": _Knob(1.0),
    "sequence_parallel": _Knob(0.0),
    "recompute": _Knob(0.0, RECOMPUTED),
    "zero": _Knob(0.0),
    "global_batch": _Knob(None),
}
_CHECKS = {
    **dict.fromkeys(("tp", "pp", "dp", "microbatch", "interleave"), number(1, 1e9, whole=True)),
    "global_batch": number(1, 1e9, whole=True),
    "sequence_parallel": flag,
    "recompute": word(*RECOMPUTED),
    "zero": number(0, 3, whole=True),
}


@dataclass(kw_only=True, eq=False)
class Training:
    """Time, memory and energy of a training step under tensor, pipeline and data parallelism.

    ``throughput`` is tokens a second, ``utilization`` the share of the devices' rate that the
    model's own operations fill (recomputed ones do not count), ``headroom`` the memory that is left
    on the fullest device. A plan that does not fit is infeasible, and says by how much.

    Not modelled: experts, context parallelism, offloading, faults; links that several collectives
    share at once; kernels other than those that Megatron runs.

    Args:
        model: a name of ``workloads.transformer_configs``.
        system: a name of ``clusters.systems``.
        sequence: tokens of one sequence.
        number_format: of the products; what was measured of the device.
        fused: attention as one kernel that never writes its scores.
        global_batch: sequences of a step; else a reading.
        reserve: share of the memory that is kept free, for the runtime and what fragments.

    Raises:
        SpecError: a name is unknown, or the device was not measured in the format.

    Source:
        Narayanan et al., SC 2021; Korthikanti et al., 2022; Rajbhandari et al., 2020; the modules
        behind it tell which equation is whose.
    """

    model: str
    system: str = "h100-dgx"
    sequence: int = 4096
    number_format: str = "bf16"
    fused: bool = True
    global_batch: int | None = None
    reserve: float = 0.06
    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(init=False, default="modelled")
    version: str = field(init=False, default="1")

    def __post_init__(self) -> None:
        self._job = Job(model=_model(self.model), sequence=self.sequence, fused=self.fused)
        self._system = system_of(self.system)
        self._device = device_of(self._system.device)
        self._chip = chip_of(self._system.device, self.number_format)
        free = set(_KNOBS) - ({"global_batch"} if self.global_batch is not None else set())
        self.reads = frozenset(name for name in free if _KNOBS[name].default is None)
        self.optional = frozenset(free) - self.reads
        self.provides = {metric.name: metric for metric in _METRICS}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Nothing, if it can be run on all of these values of its readings.

        Raises:
            SpecError: it cannot.
        """
        check_readings(values, _CHECKS)

    def evaluate(self, batch: Batch) -> Metrics:
        """The metrics of n plans."""
        among = batch.distinct(frozenset(_KNOBS))
        some = batch.take(among.rows)
        plan = self._plan(some)
        faults = infeasible(plan, self._job.model, node_devices=self._system.node_devices)
        kept = memory(self._job, plan)
        room = self._device.dram_bytes * (1.0 - self.reserve)
        faults = {**_too_large(kept, room), **faults}  # a rule that is broken says more
        alike = some.distinct(SEEN_BY_KERNELS)
        one = block(self._job, plan.take(alike.rows), self._chip).spread(alike)
        took = step(self._job, plan, one, self._chip, self._system)
        columns = self._columns(plan, took, kept)
        return Metrics(
            columns={name: among.spread(values) for name, values in columns.items()},
            faults=among.spread_rows(faults),
        )

    def _columns(self, plan: Plan, took: Step, kept: Memory) -> dict[str, Floats]:
        total_s = took.total_s
        tokens = plan.global_batch * self.sequence
        flops = model_flops(self._job) * plan.global_batch
        busy_s = took.compute_s + took.recompute_s
        power_w = self._device.power_limit_w or np.nan
        drawn_j = plan.devices * power_w * (_IDLE_SHARE * total_s + (1 - _IDLE_SHARE) * busy_s)
        parts = {part: getattr(took, f"{part}_s") for part in _STEP_PARTS}
        return {
            "step_time": total_s,
            **{f"{part}_time": seconds for part, seconds in parts.items()},
            "throughput": tokens / total_s,
            "device_throughput": tokens / total_s / plan.devices,
            "utilization": flops / (total_s * plan.devices * self._chip.flops_per_s),
            "devices": plan.devices,
            "memory": kept.total,
            **{f"{part}_memory": getattr(kept, part) for part in _MEMORY_PARTS},
            "headroom": self._device.dram_bytes - kept.total,
            "energy_per_token": drawn_j / tokens,
            "bottleneck": np.argmax(np.stack(list(parts.values())), axis=0).astype(np.float64),
        }

    def _plan(self, batch: Batch) -> Plan:
        columns = [self._column(name, batch) for name in _KNOBS]
        tensor, pipeline, data, microbatch, interleave, sequence, recompute, zero, size = columns
        return Plan(
            tensor=tensor,
            pipeline=pipeline,
            data=data,
            microbatch=microbatch,
            interleave=interleave,
            sequence_parallel=sequence > 0,
            recompute=recompute,
            zero=zero,
            global_batch=size,
        )

    def _column(self, name: str, batch: Batch) -> Floats:
        default, words = _KNOBS[name]
        if name == "global_batch" and self.global_batch is not None:
            return np.full(len(batch), float(self.global_batch))
        if name not in batch and default is not None:
            return np.full(len(batch), default)
        if words:
            places: dict[Value, float] = {value: float(at) for at, value in enumerate(words)}
            return batch.lookup(name, places, default or 0.0)
        found = batch[name] if default is None else batch.get(name, default)
        return np.asarray(found, dtype=np.float64)


def model_flops(job: Job) -> float:
    """The operations that one sequence asks of the model, forward and backward.

    Source:
        Narayanan et al., SC 2021, equation 3 without recomputation, for any widths.
    """
    model, sequence = job.model, job.sequence
    products = block_weights(model) * model.layers + model.vocabulary * model.hidden
    scores = 2.0 * sequence * model.heads * model.head * model.layers
    return 6.0 * sequence * (products + scores)


def _model(name: str) -> Transformer:
    if name not in TRANSFORMERS:
        raise SpecError(f"model cannot be {name!r}", hint=nearest(name, TRANSFORMERS))
    return TRANSFORMERS[name]


def _too_large(kept: Memory, room: float) -> dict[int, Fault]:
    gib = 2.0**30
    reason = "needs {has:.1f} GiB of memory, has {needs:.1f} GiB: {short:.1f} GiB short"
    total = np.round(kept.total / gib, 1)  # rows that differ by less share a reason
    rule = Rule(kept.total > room, reason, total, np.full_like(total, room / gib))
    return told(rule, np.ones_like(rule.broken))
