"""The evaluator ``clusters.offload``: a training step on one GPU, offloaded to host and disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.clusters.choices import Labels
from dse_evaluators.clusters.chosen_options import ChosenOptions
from dse_evaluators.clusters.offload.data_placement import (
    OVERLAPS,
    PLACES,
    WIRES,
    OffloadPlan,
    rules,
)
from dse_evaluators.clusters.offload.gpu_server import NodePrices, OffloadNode
from dse_evaluators.clusters.offload.offload_operations import (
    RESOURCES,
    OffloadStep,
    forward_flops,
    step,
)
from dse_evaluators.clusters.offload.residence import OnGpu, on_cpu, on_gpu, on_nvme, states
from dse_evaluators.clusters.offload.rooms import first_broken, room
from dse_evaluators.clusters.own_system import (
    DeviceOption,
    device_from,
    label_of_device,
    system_edition,
)
from dse_evaluators.clusters.rules import Rule
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, one_of
from dse_evaluators.readings import number

_STEP_PARTS = ("compute", "recompute", "transfer", "optimizer")
_GPU_PARTS = ("weights", "gradients", "optimizer", "activations", "logits")
_METRICS = (
    Metric(name="step_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="step_time") for part in _STEP_PARTS),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="model_rate", unit="FLOP/s", goal="maximize"),
    Metric(name="utilization", goal="maximize"),
    Metric(name="parameters", goal="maximize"),
    Metric(name="states", unit="B"),
    *(Metric(name=f"{place}_states", unit="B", part_of="states") for place in PLACES),
    Metric(name="gpu_memory", unit="B", goal="minimize"),
    *(Metric(name=f"{part}_memory", unit="B", part_of="gpu_memory") for part in _GPU_PARTS),
    Metric(name="cpu_memory", unit="B", goal="minimize"),
    Metric(name="nvme_memory", unit="B", goal="minimize"),
    Metric(name="wire_traffic", unit="B", goal="minimize"),
    Metric(name="ssd_read", unit="B", goal="minimize"),
    Metric(name="ssd_written", unit="B", goal="minimize"),
    Metric(name="node_price", unit="USD", goal="minimize"),
    Metric(name="cost_per_token", unit="USD", goal="minimize"),
    Metric(name="node_cost", unit="USD", part_of="cost_per_token"),
    Metric(name="wear_cost", unit="USD", part_of="cost_per_token"),
    Metric(name="bottleneck", words=RESOURCES),
)
_PLAN: Mapping[str, Reading] = {
    "layers": NumberInput(1, 1e5, whole=True),
    "hidden": NumberInput(1, 1e7, whole=True),
    "vocabulary": NumberInput(0, 1e8, default=50_257.0, whole=True),
    "batch": NumberInput(1, 1e7, whole=True),
    "sequence": NumberInput(1, 1e8, default=1024.0, whole=True),
    "accumulate": NumberInput(1, 1e6, default=1.0, whole=True),
    "checkpoint_interval": NumberInput(1, 1e5, default=1.0, whole=True),
    "kept": NumberInput(0, 1, default=0.0),
    "resident": NumberInput(0, 1e5, default=0.0, whole=True),
    "held": NumberInput(0, 1e5, default=0.0, whole=True),
}
# PCIe 4 x16 moves 31.5 GB/s each way before packet overhead: 25 is assumed. Adam: 2.57 s for ten
# billion weights on two Xeon 8168 (Ren et al., ZeRO-Offload, 2021, table 4, recalled). The disk is
# Intel's P5510 of 3.84 TB, one drive write a day for five years (its data sheet, recalled).
_NODE: Mapping[str, Reading] = {
    "pcie_bandwidth": NumberInput(1, 1e15, "B/s", default=25e9),
    "host_memory": NumberInput(1, 1e18, "B", default=256e9),
    "adam_rate": NumberInput(1, 1e15, "1/s", default=3.9e9),
    "ssds": NumberInput(0, 1e4, default=0.0, whole=True),
    "ssd_read_bandwidth": NumberInput(1, 1e15, "B/s", default=6.5e9),
    "ssd_write_bandwidth": NumberInput(1, 1e15, "B/s", default=3.4e9),
    "ssd_capacity": NumberInput(1, 1e18, "B", default=3.84e12),
    "ssd_endurance": NumberInput(1, 1e21, "B", default=7.0e15),
}
_WORDS: Mapping[str, Reading] = {
    **dict.fromkeys(("weights_at", "optimizer_at"), one_of(PLACES)),
    # If the input is absent, gradients are where the optimizer runs (see _plan).
    **dict.fromkeys(("gradients_at", "activations_at"), one_of(PLACES, PLACES[0])),
    "overlap": one_of(OVERLAPS, "transfers"),
    "wire_format": ChoiceInput(WIRES, "fp16"),
}


class Offload(ChosenOptions, reads={**_PLAN, **_NODE, **_WORDS}, provides=_METRICS, version="1"):
    """Time, memory, traffic and cost of a training step on one GPU, its host and its disks.

    ``throughput`` is in tokens per second; ``model_rate`` and ``utilization`` count the model's
    operations without recomputation. The share ``kept`` of the activations waits at
    ``activations_at``; the rest is recomputed from a checkpoint every ``checkpoint_interval``
    layers. ``overlap`` is ``none``, ``transfers`` (the optimizer runs after the passes, as in
    ZeRO-Infinity) or ``all`` (within the backward pass, as in Fuyou, so that gradients are not kept
    unless batches are accumulated). Weights, gradients and activations outside of the GPU are in
    ``wire_format``; its effect on quality is not modelled.

    Args:
        device: a name of ``accelerators.devices``, ``{like: rtx-4090, memory: 48 GB}``, a YAML
            file, or a list of these from which each design chooses.
        number_format: number format of the GEMMs.
        compute_share: share of the data sheet's rate that GEMMs reach: assumed.
        reserve: share of the GPU's memory that is kept free.
        prices: fields of :class:`~dse_evaluators.clusters.offload.gpu_server.NodePrices`, in US
            dollars.

    Inputs:
        gradients_at: place of the gradients; by default where the optimizer runs.
        sequence: tokens of a sequence.
        accumulate: batches for each step of the optimizer.
        checkpoint_interval, resident: in layers.
        held: last layers whose activations stay on the GPU, so that the others leave and come back
            while these are computed; only if ``activations_at`` is another place.
        pcie_bandwidth: bandwidth of PCIe in each direction.
        adam_rate: weights per second.
        ssd_read_bandwidth, ssd_write_bandwidth, ssd_capacity, ssd_endurance: figures of each disk.

    Limits:
        Not modelled: GEMMs that are too small for the device's rate, the bandwidth of host memory,
        disks that share the GPU's PCIe link, memory fragmentation. Rates, the speed of Adam and
        prices are assumed.

    Error:
        Nothing is fitted or measured. The rate of Fuyou is 127 TFLOP/s (published: 156), of its
        baseline 94 TFLOP/s (published: 45); the gain is 1.35 with the best batch of each and 1.75
        at 16 sequences (published: 3.5). Details: ``docs/offload.md``.

    Example:
        options: {layers: 40, hidden: 5120, host_memory: 256 GB}
        parameters: {batch: [8, 16], weights_at: [cpu, nvme], optimizer_at: [nvme], ssds: [4]}

    Raises:
        SpecError: the device or a price is unknown, the device has no rate in the format, or a
            number is out of range.

    Source:
        Rajbhandari et al., ZeRO-Infinity, 2021; Liao et al., Fuyou, 2024; Wu et al., SSDTrain, 2024
        (``held``).
    """

    user_options: ClassVar[Sequence[str]] = ("device",)
    choosable: ClassVar[Labels] = {"device": label_of_device}

    device: DeviceOption | Sequence[DeviceOption] = "rtx-4090"
    number_format: str = "fp16"
    compute_share: float = 0.9
    reserve: float = 0.06
    prices: Mapping[str, float] = field(default_factory=dict)
    layers: float | None = None
    hidden: float | None = None
    vocabulary: float | None = None
    batch: float | None = None
    sequence: float | None = None
    accumulate: float | None = None
    checkpoint_interval: float | None = None
    kept: float | None = None
    resident: float | None = None
    held: float | None = None
    pcie_bandwidth: float | str | None = None
    host_memory: float | str | None = None
    adam_rate: float | str | None = None
    ssds: float | None = None
    ssd_read_bandwidth: float | str | None = None
    ssd_write_bandwidth: float | str | None = None
    ssd_capacity: float | str | None = None
    ssd_endurance: float | str | None = None

    def prepare(self) -> None:
        number(1e-6, 1.0)("compute_share", self.compute_share)
        number(0.0, 0.99)("reserve", self.reserve)
        self._device = device_from(self.device)
        edition = system_edition(self.device)
        self.version = f"{type(self).version}-{edition}" if edition else type(self).version
        rates = self._device.flops_per_s
        if self.number_format not in rates:
            raise SpecError(
                f"{self._device.name} has no rate in {self.number_format!r}",
                hint=nearest(self.number_format, rates),
            )
        self._prices = NodePrices.of(self.prices)
        super().prepare()

    def evaluate_options(self, batch: Batch) -> Metrics:
        """Return time, memory, traffic and cost of n training plans."""
        columns = self._readings.columns(batch)
        plan, node = _plan(batch, columns), self._node(columns)
        took, kept = step(plan, node), on_gpu(plan)
        used = {"gpu_memory": kept.total, "cpu_memory": on_cpu(plan), "nvme_memory": on_nvme(plan)}
        broken = chain(rules(plan, node.ssds), _rooms(used, node))
        return Metrics(
            columns={
                **used,
                **_times(plan, took),
                **_bytes(plan, took, kept),
                **self._rates(plan, took),
                **self._costs(plan, took, node),
            },
            failures=first_broken(broken, len(batch)),
        )

    def _rates(self, plan: OffloadPlan, took: OffloadStep) -> dict[str, Floats]:
        rate = 3.0 * plan.accumulate * forward_flops(plan) / took.total_s
        return {
            "throughput": plan.accumulate * plan.tokens / took.total_s,
            "model_rate": rate,
            "utilization": rate / self._device.flops_per_s[self.number_format],
        }

    def _costs(self, plan: OffloadPlan, took: OffloadStep, node: OffloadNode) -> dict[str, Floats]:
        tokens = plan.accumulate * plan.tokens
        held = self._prices.held(node, took.total_s) / tokens
        worn = self._prices.worn(node, took.moved.written) / tokens
        return {
            "node_price": self._prices.node(node),
            "cost_per_token": held + worn,
            "node_cost": held,
            "wear_cost": worn,
        }

    def _node(self, columns: Mapping[str, Floats]) -> OffloadNode:
        return OffloadNode(
            flops_per_s=self._device.flops_per_s[self.number_format] * self.compute_share,
            dram_bytes=self._device.dram_bytes * (1.0 - self.reserve),
            dram_bytes_per_s=self._device.dram_bytes_per_s,
            **{name: columns[name] for name in _NODE},
        )


def _plan(batch: Batch, columns: Mapping[str, Floats]) -> OffloadPlan:
    beside = np.minimum(columns["optimizer_at"], 1.0)
    gradients_at = np.where(batch.absent("gradients_at"), beside, columns["gradients_at"])
    own = (*_PLAN, "weights_at", "optimizer_at", "activations_at", "overlap")
    return OffloadPlan(
        **{name: columns[name] for name in own},
        gradients_at=gradients_at,
        wire_bytes=columns["wire_format"],
    )


def _times(plan: OffloadPlan, took: OffloadStep) -> dict[str, Floats]:
    return {
        "step_time": took.total_s,
        **{f"{part}_time": getattr(took, f"{part}_s") for part in _STEP_PARTS},
        "bottleneck": np.argmax(np.stack(took.busy_s), axis=0).astype(np.float64),
        "parameters": plan.parameters,
    }


def _bytes(plan: OffloadPlan, took: OffloadStep, kept: OnGpu) -> dict[str, Floats]:
    gpu, cpu, nvme = states(plan)
    return {
        "states": gpu + cpu + nvme,
        "gpu_states": gpu,
        "cpu_states": cpu,
        "nvme_states": nvme,
        **{f"{part}_memory": getattr(kept, part) for part in _GPU_PARTS},
        "wire_traffic": took.moved.down + took.moved.up,
        "ssd_read": took.moved.read,
        "ssd_written": took.moved.written,
    }


def _rooms(used: Mapping[str, Floats], node: OffloadNode) -> Iterator[Rule]:
    yield room("gpu_memory", used["gpu_memory"], np.full_like(node.ssds, node.dram_bytes))
    yield room("cpu_memory", used["cpu_memory"], node.host_memory)
    yield room("nvme_memory", used["nvme_memory"], node.ssds * node.ssd_capacity)
