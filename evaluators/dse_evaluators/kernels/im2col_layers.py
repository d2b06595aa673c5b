"""The layers of a workload that can run as im2col convolutions, and those that a design runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.workloads.catalogue import layers_of
from dse_evaluators.workloads.layers import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShapes:
    """The distinct shapes of a workload, with where each layer's stands among them."""

    shapes: tuple[Layer, ...]
    place: Mapping[str, int]

    def check(self, layer: str) -> None:
        """Nothing, if there is a layer of this name. Raises SpecError if not."""
        if layer not in self.place:
            raise SpecError(f"layer cannot be {layer!r}", hint=nearest(layer, self.place))

    def times(self, batch: Batch) -> Floats:
        """Return the number of runs of each shape in each design, (l, n).

        A design that names its ``layer`` runs the shape of that layer once, and no other.
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


def shapes_of(workload: str) -> LayerShapes:
    """The shapes of a workload by its name.

    Raises:
        SpecError: there is no such workload, or a layer of it is no plain convolution.
    """
    layers = layers_of(workload)
    for layer in layers:
        if layer.groups != 1 or layer.copies != 1:
            raise SpecError(
                f"the layer {layer.name!r} of {workload} is no convolution of one group",
                hint="take a workload without groups and attention, such as resnet50",
            )
    shapes: dict[Layer, int] = {}
    place = {
        layer.name: shapes.setdefault(
            replace(layer, name="", pruned_inputs=True, pruned_outputs=True), len(shapes)
        )
        for layer in layers
    }
    return LayerShapes(shapes=tuple(shapes), place=place)
