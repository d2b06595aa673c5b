"""The evaluator ``kernels.grouped-network``: timing of a network with regrouped convolutions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import InfeasibleError
from dse_evaluators.accelerators.grouped.grouped_convolution import GROUPINGS
from dse_evaluators.compression.timing import Timing
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.kernels.convolution_shape import ConvolutionShape
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import NumberInput, Reading, one_of
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.own.own_workload import known_layers

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="grouped_time", unit="s", part_of="latency"),
    Metric(name="other_time", unit="s", part_of="latency"),
    Metric(name="rate", unit="MAC/s", goal="maximize"),
    Metric(name="grouped_rate", unit="MAC/s", goal="maximize"),
    Metric(name="macs", unit="MAC"),
)

_INPUTS: Mapping[str, Reading] = {
    "group": NumberInput(1, 1 << 16, whole=True),
    "grouping": one_of(GROUPINGS, GROUPINGS[0]),
}


class GroupedNetwork(
    DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"
):
    """CPU time of a network's layers on one thread, with its depthwise layers regrouped.

    Layers are timed separately in fp32, equal ones once, and their CPU times are added; cache reuse
    between layers is not captured. ``grouped_rate`` is the rate of the regrouped layers alone.

    Args:
        workload: a workload of ``workloads.catalogue``, or a file of yours
            (``docs/workloads.md``); its layers are a chain of square convolutions.
        batch: images per call.
        warmup: calls before timing.
        repeats: number of timed rounds, each of at least 5 ms; the result is their median and its
            standard error.

    Inputs:
        group: with grouping ``size``, the number of channels of each group, at most all channels of
            a layer; with ``count`` the number of groups of each layer, at most one per channel.

    Limits:
        A measurement takes 1 to 3 s for each network; equal layers are timed once.

    Error:
        Times are CPU seconds of one thread, which other load affects little. MobileNetV1 with
        groups of one size is 9 to 12 % faster than with the same number of groups in all layers.

    Example:
        parameters: {group: [4, 8, 16], grouping: [size, count]}

    Raises:
        PluginError: a count is invalid.
        SpecError: the workload is unknown.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = "mobilenetv1"
    batch: int = 1
    warmup: int = 3
    repeats: int = 9

    def __post_init__(self) -> None:
        check_count("batch", self.batch, least=1)
        check_count("warmup", self.warmup, least=0)
        check_count("repeats", self.repeats, least=2)
        self._layers = known_layers(self, self.workload)
        self._times: dict[ConvolutionShape, tuple[float, float]] = {}
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Measure the CPU time of each design's network, one at a time; return metrics, (n,)."""
        return one_by_one(batch, self.provides, self._measure_design, uncertain=("latency",))

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        shapes = self._shapes(design)
        for shape in shapes:
            if shape.uneven:
                raise InfeasibleError(shape.uneven)
        times = [self._time_shape(shape) for shape in shapes]
        latency = math.fsum(seconds for seconds, _ in times)
        grouped = [
            (shape.macs, seconds)
            for layer, shape, (seconds, _) in zip(self._layers, shapes, times, strict=True)
            if _is_depthwise(layer)
        ]
        grouped_s = math.fsum(seconds for _, seconds in grouped)
        grouped_macs = sum(macs for macs, _ in grouped) * self.batch
        macs = sum(shape.macs for shape in shapes) * self.batch
        return Found(
            values={
                "latency": latency,
                "grouped_time": grouped_s,
                "other_time": latency - grouped_s,
                "rate": macs / latency,
                "grouped_rate": grouped_macs / grouped_s if grouped_s else 0.0,
                "macs": float(macs),
            },
            errors={"latency": math.hypot(*(error for _, error in times))},
        )

    def _time_shape(self, shape: ConvolutionShape) -> tuple[float, float]:
        # Deferred: Torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.kernels.torch_convolution import measured_s

        if shape not in self._times:
            timing = Timing(warmup=self.warmup, repeats=self.repeats, batch=self.batch)
            self._times[shape] = measured_s(shape, timing)
        return self._times[shape]

    def _shapes(self, design: Mapping[str, Value]) -> tuple[ConvolutionShape, ...]:
        group, by_count = int(design["group"]), design.get("grouping") == GROUPINGS[1]
        return tuple(_shape(layer, group, by_count=by_count) for layer in self._layers)


def _is_depthwise(layer: Layer) -> bool:
    return 1 < layer.groups == layer.channels


def _shape(layer: Layer, group: int, *, by_count: bool) -> ConvolutionShape:
    size = max(layer.channels // group, 1) if by_count else min(group, layer.channels)
    return ConvolutionShape(
        channels=layer.channels,
        filters=layer.filters,
        side=layer.output_height,
        window=layer.filter_height,
        stride=layer.stride,
        group=size if _is_depthwise(layer) else layer.channels,
    )
