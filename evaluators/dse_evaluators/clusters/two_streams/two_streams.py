"""Evaluator ``clusters.two-streams``: time and memory of an iteration by the MAD-Max model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.alike import evaluate_distinct, fix_columns, gather_parts, groups
from dse_evaluators.amounts import amount
from dse_evaluators.clusters.two_streams.iteration import PARTS
from dse_evaluators.clusters.two_streams.layout_plan import KNOBS, infeasible, plan_of
from dse_evaluators.clusters.two_streams.machines import COLLECTIVES, MACHINES, Bills
from dse_evaluators.clusters.two_streams.model_table import MODELS, model_of
from dse_evaluators.clusters.two_streams.scenario import TASKS, Scenario, task_of
from dse_evaluators.clusters.two_streams.strategies import DENSE, EMBEDDING
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import Reading, Readings, one_of

_METRICS = (
    Metric(name="iteration_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="iteration_time") for part in PARTS),
    Metric(name="exposed_time", unit="s", goal="minimize"),
    Metric(name="exposed_share", goal="minimize"),
    Metric(name="communication_time", unit="s"),
    *(Metric(name=f"{name}_time", unit="s", part_of="communication_time") for name in COLLECTIVES),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="device_throughput", unit="1/s", goal="maximize"),
    Metric(name="devices", goal="minimize"),
    Metric(name="memory", unit="B", goal="minimize"),
    Metric(name="dense_memory", unit="B", part_of="memory"),
    Metric(name="embedding_memory", unit="B", part_of="memory"),
    Metric(name="headroom", unit="B", goal="maximize"),
    Metric(name="device_time_per_sample", unit="s", goal="minimize"),
    Metric(name="energy_per_sample", unit="J", goal="minimize"),
    Metric(name="cost_per_sample", unit="USD", goal="minimize"),
    Metric(name="carbon_per_sample", unit="kg", goal="minimize"),
    Metric(name="time_to_train", unit="s", goal="minimize"),
    Metric(name="bottleneck", words=PARTS),
    Metric(name="extrapolated", words=("no", "yes")),
)

_READINGS: Mapping[str, Reading] = {
    **KNOBS,
    "model": one_of(MODELS),
    "task": one_of(TASKS, TASKS[0]),
    "system": one_of(MACHINES),
    "dense": one_of(DENSE),
    "embedding": one_of(EMBEDDING, "mp"),  # designs without it use the default of their model
}

_IDLE_SHARE = 0.3
"""Power of a waiting device, as a share of its power limit; as for ``clusters.training``."""


class TwoStreams(
    DeclaredEvaluator,
    reads=_READINGS,
    provides=_METRICS,
    version="2",
    fits=("diffusion.fits.json",),
):
    """Time, memory, energy and cost of an iteration of a model sharded over a cluster.

    One stream computes, one communicates, and each runs in order. ``dense`` is the parallel layout
    of layers and ``embedding`` that of tables, from the devices of a node outwards: ``tp-ddp`` is
    tensor parallel within a node and data parallel between nodes. An ``exposed`` time is that of a
    collective during which nothing is computed; ``throughput`` counts samples: recommendation
    samples, sequences or images.

    Args:
        model: a name of :data:`~dse_evaluators.clusters.two_streams.model_table.MODELS`.
        system: a name of :data:`~dse_evaluators.clusters.two_streams.machines.MACHINES`.
        task: pretrain, finetune or inference. Without the option, each of these three is an input;
            the default task is pretrain.
        frozen: parts that are not trained while fine-tuning: stacks of the model, or ``embedding``;
            by default ``embedding`` if the model has tables. Needs ``model`` and ``task``.
        prefetch: whether a unit's weights for the backward pass are gathered while the previous
            unit runs.
        sharded_sums: whether a device reduces only the gradients of its own weight shard. By
            default complete layers are reduced where ``tp`` or ``fsdp`` is inside ``ddp``, as in
            the authors' tool.
        samples: samples of the complete training; needed for ``time_to_train``.
        nodes, devices_per_node, global_batch: fix the inputs of these names.
        price_per_hour: US dollars per device and hour; by default the price of each machine.
        grid: a name of ``carbon.grids``.
        pue: power usage effectiveness: power of the building over that of its computers.

    Limits:
        Not modelled, as in MAD-Max: activation memory, the score and value products of attention in
        language models, pipelines, faults; the time of a collective does not depend on the number
        of devices.

    Error:
        68 iterations of the authors' tool agree to twelve digits, their twelve cloud rates to .33
        %. U-Net on A100, held out: 1.4 % (512 x 512), 15.8 % and at most 51 % (256 x 256). Details:
        ``docs/two_streams.md``.

    Example:
        options: {model: dlrm-a-moe}
        parameters: {dense: [ddp, fsdp-tp], system: [aws-p4d, zionex], nodes: [16]}

    Raises:
        SpecError: a name is unknown, or a number out of range.

    Source:
        Hsia, Golden, Acun, Ardalani, DeVito, Wei, Brooks, Wu: MAD-Max Beyond Single-Node, ISCA
        2024.
    """

    model: str | None = None
    system: str | None = None
    task: str | None = None
    frozen: Sequence[str] | None = None
    prefetch: bool = False
    sharded_sums: bool = False
    samples: float | str | None = None
    nodes: int | None = None
    devices_per_node: int | None = None
    global_batch: int | None = None
    price_per_hour: float | None = None
    grid: str = "usa"
    pue: float = 1.1

    def __post_init__(self) -> None:
        self._settled = {
            name: value
            for name in ("model", "task", "system")
            if (value := getattr(self, name)) is not None
        }
        readings = Readings.of(_READINGS, self)
        if self.frozen is not None and not {"model", "task"} <= self._settled.keys():
            raise SpecError("frozen needs model and task", hint="state both as options")
        tables = self.model is None or model_of(self.model).lookup_bytes
        self.declare(readings if tables else readings.fixed({"embedding": "mp"}))
        self._samples = None if self.samples is None else amount("samples", self.samples, "")
        self._scenarios: dict[tuple[str, ...], Scenario] = {}
        if self.frozen is not None:
            self._scenario(self._settled["model"], self._settled["task"])
        self._bills = Bills.of(price_per_hour=self.price_per_hour, grid=self.grid, pue=self.pue)
        self.provides = {
            one.name: one
            for one in _METRICS
            if one.name != "time_to_train" or self._samples is not None
        }

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n plans as arrays (n,) by name, with infeasible plans."""
        return evaluate_distinct(batch, self.reads | self.optional, self._evaluate_columns)

    def _evaluate_columns(self, batch: Batch) -> Metrics:
        """Return the metrics of n plans, each in the scenario (model and task) of its design."""
        every = fix_columns(batch, self._settled)
        parts = (
            (rows, self._under(self._scenario(model, task), every.take(rows)))
            for (model, task), rows in groups(every, {"model": "", "task": TASKS[0]})
        )
        return gather_parts(len(batch), self.provides, parts)

    def _scenario(self, model: str, task: str) -> Scenario:
        if (model, task) not in self._scenarios:
            known = model_of(model)
            purpose = task_of(known, task, self.frozen, ahead=self.prefetch)
            self._scenarios[model, task] = Scenario(
                model=known, task=purpose, sharded_sums=self.sharded_sums
            )
        return self._scenarios[model, task]

    def _under(self, scenario: Scenario, batch: Batch) -> Metrics:
        """Return the metrics of plans that share one model and task."""
        plan = plan_of(batch, self._readings, scenario.model)
        found = scenario.spent(batch, plan)
        total_s = found["iteration_time"]
        memory = found["dense_memory"] + found["embedding_memory"]
        exposed_s = _sum_collectives(found, "exposed_{}_time")
        parts = np.stack([found[f"{part}_time"] for part in PARTS])
        held_s = plan.devices * total_s / plan.global_batch
        drawn_s = held_s * (_IDLE_SHARE + (1.0 - _IDLE_SHARE) * (1.0 - exposed_s / total_s))
        columns = {
            **found,
            "exposed_time": exposed_s,
            "exposed_share": exposed_s / total_s,
            "communication_time": _sum_collectives(found, "{}_time"),
            "throughput": plan.global_batch / total_s,
            "device_throughput": plan.global_batch / total_s / plan.devices,
            "devices": plan.devices,
            "memory": memory,
            "headroom": plan.memory_bytes - memory,
            "device_time_per_sample": held_s,
            **self._bills.per_sample(batch, held_s, drawn_s),
            "time_to_train": (self._samples or 0.0) * total_s / plan.global_batch,
            "extrapolated": plan.extrapolated,
            "bottleneck": np.argmax(parts, axis=0).astype(np.float64),
        }
        failures = infeasible(plan, found, memory)
        return Metrics(columns=columns, failures=failures)


def _sum_collectives(found: Mapping[str, Floats], pattern: str) -> Floats:
    """Return the sum over all collectives of the columns named for them, (n,), in fixed order."""
    total = np.zeros(1)
    for name in COLLECTIVES:
        total = total + found[pattern.format(name)]
    return total
