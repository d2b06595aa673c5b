"""Distinct convolution shapes of a workload, and how often each design runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.workloads.layers import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShapes:
    """Distinct layer shapes of a workload, and for each layer name the index of its shape."""

    shapes: tuple[Layer, ...]
    place: Mapping[str, int]

    def check(self, layer: str) -> None:
        """Raise SpecError unless the workload has a layer of this name."""
        if layer not in self.place:
            raise SpecError(f"layer cannot be {layer!r}", hint=nearest(layer, self.place))

    def times(self, batch: Batch) -> Floats:
        """Return the number of times that each design runs each layer shape, (shapes, n).

        A design with the parameter ``layer`` runs only that layer, once.
        """
        every = np.bincount(list(self.place.values()), minlength=len(self.shapes)).astype(float)
        if "layer" not in batch:
            return np.repeat(every[:, None], len(batch), axis=1)
        named = batch.get("layer", "").tolist()
        rows = {
            name: every if name == "" else np.eye(len(self.shapes))[self.place[name]]
            for name in dict.fromkeys(named)
        }
        return np.stack([rows[name] for name in named], axis=1)


def shapes_of(layers: Sequence[Layer]) -> LayerShapes:
    """Return the distinct layer shapes of a workload.

    Args:
        layers: the layers of the workload.

    Raises:
        SpecError: a layer is grouped or copied (attention heads).
    """
    for layer in layers:
        if layer.groups != 1 or layer.copies != 1:
            raise SpecError(
                f"the layer {layer.name!r} is not a convolution of one group",
                hint="use a workload without groups and attention, such as resnet50",
            )
    shapes: dict[Layer, int] = {}
    place = {
        layer.name: shapes.setdefault(
            replace(layer, name="", pruned_inputs=True, pruned_outputs=True), len(shapes)
        )
        for layer in layers
    }
    return LayerShapes(shapes=tuple(shapes), place=place)
