"""Evaluator ``accelerators.row-stationary``: grouped convolutions on a row-stationary array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.accelerators.grouped.grouped_convolution import (
    ConvolutionShapes,
    GroupConvolutionNetwork,
    Grouping,
    sum_layers,
)
from dse_evaluators.accelerators.grouped.grouped_readings import (
    READINGS,
    check_grouping,
    read_grouping,
)
from dse_evaluators.accelerators.grouped.row_stationary_array import (
    Cycles,
    RowStationaryArray,
    cycles,
)
from dse_evaluators.alike import infeasible
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading
from dse_evaluators.workloads.own.own_workload import known_layers

_WAITS = ("macs", "mapping", "feed")

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="macs_time", unit="s", part_of="latency"),
    Metric(name="mapping_time", unit="s", part_of="latency"),
    Metric(name="feed_time", unit="s", part_of="latency"),
    Metric(name="bottleneck", words=_WAITS),
    Metric(name="cycles", goal="minimize"),
    Metric(name="utilization", goal="maximize"),
    Metric(name="mean_utilization", goal="maximize"),
    Metric(name="grouped_utilization", goal="maximize"),
    Metric(name="utilization_gain", goal="maximize"),
    Metric(name="latency_gain", goal="maximize"),
    Metric(name="macs", unit="MAC", goal="maximize"),
    Metric(name="weights", goal="minimize"),
    Metric(name="solved_width"),
)

_SIZES = ("rows", "cols", "feed")
_ARRAY: Mapping[str, Reading] = {
    **dict.fromkeys(_SIZES, NumberInput(1, 1e12)),
    "clock": NumberInput(1, 1e15, "Hz", default=1e9),
}


class RowStationary(
    DeclaredEvaluator, reads={**READINGS, **_ARRAY}, provides=_METRICS, version="1"
):
    """Time and utilization of a network with regrouped convolutions on a row-stationary array.

    The depthwise layers of the workload are regrouped; metrics are for one batch.

    ``utilization`` is weighted by time; ``mean_utilization`` is the mean over layers, each counted
    once, and ``grouped_utilization`` the mean over the regrouped layers. ``utilization_gain`` is
    the relative gain of ``mean_utilization`` over the original network on the same array, and
    ``latency_gain`` the fraction of its time that is saved. A design is infeasible if the array has
    fewer rows than a window.

    Args:
        workload: a workload of ``workloads.catalogue``, or a file of yours
            (``docs/workloads.md``), evaluated as a chain of layers.

    Inputs:
        feed: words per cycle at the edge of the array.
        group: one value, or a list with one per depthwise layer.
        grouping: with ``size``, group is the channels per group; with ``count`` the groups per
            layer.
        width: multiplier of all channels; 0: the one at which the network keeps its original number
            of multiplications, with fractional channels allowed.

    Limits:
        Not modelled: the order of the sets of processing elements, memory behind the feed, layers
        other than convolutions and matrix products.

    Error:
        MobileNet's multiplications and weights at four widths agree in the printed digits.
        Utilization: DRACO's arrays are not published; none of 350 configurations reproduces both of
        its gains.

    Example:
        parameters: {rows: [12, 64], cols: [14, 64], feed: [16, 64], group: [4, 32]}

    Source:
        Jha et al.: DRACO: Co-Optimizing Hardware Utilization, and Performance of DNNs on Systolic
        Accelerator, 2020. Its array is not published in full: sets are Eyeriss's, the feed is an
        assumption of this model.

    Raises:
        SpecError: there is no such workload.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = "mobilenetv1"

    def __post_init__(self) -> None:
        self._network = GroupConvolutionNetwork(known_layers(self, self.workload))
        super().__post_init__()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        check_grouping(self._network, self._readings, values)

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute time and utilization of n designs; a window above the array is infeasible."""
        array = RowStationaryArray(**{name: self._readings.column(name, batch) for name in _SIZES})
        asked = read_grouping(self._network, batch)
        shapes = self._network.shapes(asked.grouping)
        window = float(shapes.window_height.max())
        fitting = (
            RowStationaryArray(  # infeasible arrays are evaluated at the smallest feasible size
                rows=np.maximum(array.rows, window), cols=array.cols, feed=array.feed
            )
        )
        new = cycles(shapes, fitting, asked.batch)
        old = cycles(self._network.shapes(_as_it_is(len(batch))), fitting, asked.batch)
        return Metrics(
            columns={
                **_times(new, self._readings.column("clock", batch)),
                **self._shares(new, old),
                **_counts(shapes, asked.grouping.width, asked.batch),
            },
            failures=_too_small(array.rows, window),
        )

    def _shares(self, new: Cycles, old: Cycles) -> Mapping[str, Floats]:
        whole = sum_layers(new.all)
        mean, before = (sum_layers(each.utilization) / len(each.macs) for each in (new, old))
        grouped = self._network.grouped
        regrouped_layers = max(int(grouped.sum()), 1)
        return {
            "cycles": whole,
            "utilization": sum_layers(new.macs) / whole,
            "mean_utilization": mean,
            "grouped_utilization": sum_layers(new.utilization * grouped) / regrouped_layers,
            "utilization_gain": mean / before - 1,
            "latency_gain": 1 - whole / sum_layers(old.all),
        }


def _times(new: Cycles, clock_hz: Floats) -> Mapping[str, Floats]:
    parts = np.array([sum_layers(each) for each in (new.macs, new.mapping, new.feed)]) / clock_hz
    named = {f"{name}_time": part for name, part in zip(_WAITS, parts, strict=True)}
    return {
        **named,
        "latency": sum_layers(parts),
        "bottleneck": parts.argmax(axis=0).astype(float),
    }


def _counts(shapes: ConvolutionShapes, width: Floats, images: Floats) -> Mapping[str, Floats]:
    return {
        "macs": sum_layers(shapes.macs) * images,
        "weights": sum_layers(shapes.weights),
        "solved_width": width,
    }


def _as_it_is(size: int) -> Grouping:
    ones = np.ones(size)
    return Grouping(group=ones, by_count=np.zeros(size, dtype=bool), width=ones)


def _too_small(rows: Floats, window: float) -> Mapping[int, Failure]:
    return infeasible(
        rows < window,
        lambda row: (
            f"needs {window:g} rows for a window, has {rows[row]:g}: {window - rows[row]:g} short"
        ),
    )
