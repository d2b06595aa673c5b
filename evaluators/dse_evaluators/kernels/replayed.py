"""The evaluator ``kernels.convolution-replayed``: L2 and DRAM traffic from an exact replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.errors import SpecError, nearest
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.kernels.gpus import GPUS
from dse_evaluators.kernels.im2col_layers import shapes_of
from dse_evaluators.kernels.im2col_replay import replay
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading, Readings
from dse_evaluators.readings import check_with_lookup
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.own.own_workload import known_layers

_METRICS = (
    Metric(name="l2_traffic", unit="B", goal="minimize"),
    Metric(name="read_traffic", unit="B", goal="minimize"),
    Metric(name="input_traffic", unit="B", part_of="read_traffic"),
    Metric(name="filter_traffic", unit="B", part_of="read_traffic"),
)

_ELEMENT_BYTES = 4

_COUNT = NumberInput(1, 1 << 20, default=1.0, whole=True)
_INPUTS: Mapping[str, Reading] = {
    "l2_size": NumberInput(1, 1e18, "B"),
    "batch": _COUNT,
    "sms": _COUNT._replace(default=GPUS["titan-xp"].sms),
}


class ConvolutionReplayed(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Requests to L2 and its reads from DRAM, counted by replaying every load of a convolution.

    This evaluator is the test oracle of ``kernels.convolution`` and shares no code with the traffic
    model of ``kernels.convolution``.

    Args:
        workload: a workload of ``workloads.catalogue``, or a file of yours
            (``docs/workloads.md``); without groups and attention.

    Inputs:
        layer: the name of a layer of the workload.
        sms: number of streaming multiprocessors; by default the number of a TITAN Xp.

    Limits:
        A replay takes 0.1 to 2 s for a small layer.

    Error:
        This evaluator is the reference for ``kernels.convolution``: every load is simulated with an
        LRU cache.

    Example:
        options: {workload: digits-cnn}
        parameters: {layer: [conv1, conv3], tile: [16x16x4, 16x32x8], l2_size: [2048, 4096]}
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = "resnet50"

    def __post_init__(self) -> None:
        self._shapes = shapes_of(known_layers(self, self.workload))
        layer = CheckedInput(check_with_lookup(self._shapes.check))
        tile = CheckedInput(check_with_lookup(_sides))
        self.declare(Readings({**_INPUTS, "layer": layer, "tile": tile}))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return L2 and DRAM traffic of n designs; one replay serves all sizes of L2."""
        columns = (
            batch["layer"],
            self._readings.column("batch", batch),
            batch["tile"],
            self._readings.column("sms", batch),
            batch["l2_size"] // _ELEMENT_BYTES,
        )
        rows = [
            self._row(self._shape(str(layer)), int(count), str(tile), int(sms), int(size))
            for layer, count, tile, sms, size in zip(*(c.tolist() for c in columns), strict=True)
        ]
        l2, inputs, filters = _ELEMENT_BYTES * np.array(rows, dtype=float).reshape(-1, 3).T
        return Metrics(
            columns={
                "l2_traffic": l2,
                "read_traffic": inputs + filters,
                "input_traffic": inputs,
                "filter_traffic": filters,
            }
        )

    def _shape(self, layer: str) -> Layer:
        return self._shapes.shapes[self._shapes.place[layer]]

    @staticmethod
    def _row(shape: Layer, batch: int, tile: str, sms: int, elements: int) -> tuple[int, int, int]:
        """Return one design's elements requested from L2, and inputs and filters read from DRAM."""
        found = replay(shape, batch, _sides(tile), sms)
        return found.l2, found.inputs.at(elements), found.filters.at(elements)


def _sides(text: str) -> tuple[int, int, int]:
    """Parse a tile such as ``128x64x4`` into rows, columns, depth; raise SpecError if invalid."""
    sides = text.split("x")
    if len(sides) != 3 or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise SpecError(f"tile cannot be {text!r}", hint=nearest(text, ["128x64x4"]))
    rows, cols, depth = map(int, sides)
    return rows, cols, depth
