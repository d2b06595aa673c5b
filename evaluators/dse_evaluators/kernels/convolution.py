"""The evaluator ``kernels.convolution``: model of a network's convolutions on a scaled GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.kernels.gpus import GPUS, GpuSpec
from dse_evaluators.kernels.im2col_layers import shapes_of
from dse_evaluators.kernels.im2col_time import LEVELS, Im2colTotals, Resources
from dse_evaluators.kernels.im2col_traffic import ELEMENT_BYTES, tile_of, traffic
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading, Readings
from dse_evaluators.readings import check_with_lookup, look_up_row, number
from dse_evaluators.workloads.own.own_workload import known_layers

_PARTS = (*LEVELS, "edge")

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    *(Metric(name=f"{name}_time", unit="s", part_of="latency") for name in _PARTS),
    Metric(name="bottleneck", words=_PARTS),
    Metric(name="l1_traffic", unit="B", goal="minimize"),
    Metric(name="l2_traffic", unit="B", goal="minimize"),
    Metric(name="dram_traffic", unit="B", goal="minimize"),
    *(
        Metric(name=f"{name}_traffic", unit="B", part_of="dram_traffic")
        for name in ("input", "filter", "output")
    ),
    Metric(name="slack", goal="minimize"),
    Metric(name="cost", goal="minimize"),
)

SHARED_BYTES = 48 * 2**10
"""Default shared memory limit of a thread block, in bytes: CUDA C++ Programming Guide."""

_MOST_IMAGES = 1 << 12

_RESOURCES: Mapping[str, Reading] = {
    "sms": NumberInput(1, 1 << 16, whole=True),
    "clock": NumberInput(1, 1e18, "Hz"),
    "macs_per_cycle": NumberInput(1, 1 << 20),
    **dict.fromkeys(
        ("l1_bandwidth", "l2_bandwidth", "dram_bandwidth"), NumberInput(1, 1e18, "B/s")
    ),
    "l2_size": NumberInput(1, 1e18, "B"),
}
_INPUTS: Mapping[str, Reading] = {
    "tile": CheckedInput(check_with_lookup(tile_of)),
    **_RESOURCES,
}


class Convolution(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Latency, traffic and hardware cost of a network's convolutions run as im2col GEMMs.

    A layer takes the time of its slowest level (compute, L1, L2 or DRAM), plus the time of loading
    the first step of each tile and of writing the outputs (``edge``). ``compute_time`` is the time
    of the layers whose slowest level is compute, and ``l1_time``, ``l2_time`` and ``dram_time`` are
    the times of the layers with the other slowest levels: the parts sum to ``latency``. ``slack``
    measures over-provisioning: the largest share of time that a resource idles even in the layer
    that uses it most. ``cost`` is the sum of five ratios to the resources of ``gpu``: of the
    multiplication rate, the bandwidths of L1, L2 and DRAM, and the size of L2. The cost of ``gpu``
    itself is therefore 5.

    Args:
        workload: a workload of ``workloads.catalogue``, or a file of yours
            (``docs/workloads.md``); without groups and attention.
        gpu: ``titan-xp``, ``p100`` or ``v100``.
        images: images per batch if the space has no ``batch``.

    Inputs:
        tile: pixels, filters and depth, such as ``128x64x4``.
        macs_per_cycle, l1_bandwidth: figures of one SM; by default the figures of ``gpu``.
        sms, clock, l2_bandwidth, dram_bandwidth, l2_size: by default the figures of ``gpu``.
        batch: images per batch; by default ``images``.
        layer: name of the layer that runs; by default all layers run in sequence.

    Limits:
        Times are not validated: the measured times of the paper were not available. Of the
        simulated cases, 756 are of seven layers; 160 were drawn after the model was finished.

    Error:
        Against a simulation of every load on 756 cases: L2 traffic at most 0.7 % off; DRAM traffic
        within 20 % in 754 cases, at most 50 % (14 % with the L2 of a TITAN Xp). On 160 cases of
        other networks (``benchmarks/delta.py``): L2 0.3 %, DRAM within 20 % in 157.

    Example:
        options: {workload: digits-cnn}
        parameters: {tile: [64x64x8, 128x32x4], sms: [8, 30], l2_size: [262144, 1048576]}

    Source:
        Lym et al.: DeLTA: GPU Performance Model for Deep Learning Applications with In-depth Memory
        System Traffic Analysis, 2019. The paper's own stream model was not available.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = "resnet50"
    gpu: str = "titan-xp"
    images: int = 1

    def __post_init__(self) -> None:
        self._base = look_up_row("gpu", self.gpu, GPUS)
        number(1, _MOST_IMAGES)("images", self.images)
        self._shapes = shapes_of(known_layers(self, self.workload))
        layer = CheckedInput(check_with_lookup(self._shapes.check), default="")
        images = NumberInput(1, _MOST_IMAGES, default=self.images, whole=True)
        readings = Readings({**_INPUTS, "layer": layer, "batch": images})
        self.declare(readings.otherwise(asdict(self._base)))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return latency, traffic and cost of n designs, (n,); designs with invalid tiles fail."""
        inputs = self._readings.columns(batch)
        resources = Resources(**{name: inputs[name] for name in _RESOURCES})
        columns = (batch["tile"], inputs["batch"], resources.sms)
        keys = list(zip(*(column.tolist() for column in columns), strict=True))
        distinct = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        place = np.array([distinct[key] for key in keys], dtype=np.int64)
        run = Im2colTotals.empty(len(batch))
        for shape, times in zip(self._shapes.shapes, self._shapes.times(batch), strict=True):
            if times.any():
                counted = [
                    (tile_of(text), traffic(shape, int(count), tile_of(text), int(sms)))
                    for text, count, sms in distinct
                ]
                run.add(shape, counted, place, times, resources)
        return Metrics(columns=_columns(run, resources, self._base), failures=_failures(batch))


def _columns(run: Im2colTotals, resources: Resources, base: GpuSpec) -> dict[str, Floats]:
    parts = {name: run.seconds[name] for name in _PARTS}
    return {
        "latency": np.sum(list(parts.values()), axis=0),
        **{f"{name}_time": column for name, column in parts.items()},
        "bottleneck": np.argmax(np.stack(list(parts.values())), axis=0).astype(float),
        **{f"{name}_traffic": run.elements[name] * ELEMENT_BYTES for name in run.elements},
        "dram_traffic": ELEMENT_BYTES
        * (run.elements["input"] + run.elements["filter"] + run.elements["output"]),
        "slack": 1 - np.stack(list(run.busiest.values())).min(axis=0),
        "cost": _cost(resources, base),
    }


def _cost(resources: Resources, base: GpuSpec) -> Floats:
    """Return the hardware cost, (n,): the sum of resources relative to those of the base GPU."""
    sms = resources.sms / base.sms
    return np.asarray(
        sms * resources.clock / base.clock * resources.macs_per_cycle / base.macs_per_cycle
        + sms * resources.l1_bandwidth / base.l1_bandwidth
        + resources.l2_bandwidth / base.l2_bandwidth
        + resources.dram_bandwidth / base.dram_bandwidth
        + resources.l2_size / base.l2_size
    )


def _failures(batch: Batch) -> dict[int, Failure]:
    """Return the fault of each design whose tile exceeds a thread block's shared memory."""
    texts = batch["tile"].tolist()
    needs = {text: tile_of(text).shared_bytes for text in dict.fromkeys(texts)}
    return {
        row: Failure(
            kind="infeasible",
            reason=f"a tile of {text} needs {needs[text] / 2**10:g} KiB of shared memory, has "
            f"{SHARED_BYTES / 2**10:g} KiB: {(needs[text] - SHARED_BYTES) / 2**10:g} KiB short",
        )
        for row, text in enumerate(texts)
        if needs[text] > SHARED_BYTES
    }
