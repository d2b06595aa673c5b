"""The evaluator `compression.noise`: how far weights are off under recipes, without running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse_evaluators.compression import model_layers
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.layer_sums import sum_layers
from dse_evaluators.compression.model_recipes import ModelRecipes
from dse_evaluators.workloads.editions import edition_of

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="noise", goal="minimize"),
        Metric(name="sqnr_db", goal="maximize"),
    )
}

_LEAST = 1e-15
"""Of noise: single precision has no less that is not none."""


@dataclass(kw_only=True)
class Noise:
    """Effect of recipes on the weights, as a hint of their effect on the outputs.

    ``noise`` is the squared error of a layer over its squares, the mean over the layers, and
    ``sqnr_db`` the same in decibels. Each layer is compressed once for each of its recipes; that
    costs milliseconds and no run of the model, so that an optimizer can look at all designs.

    Args:
        model: its name.
        recipe: what is done to each layer.
        layers: other recipes, by pattern of the layers' names; the first that matches counts.

    Raises:
        PluginError: there is no such model.
        SpecError: a recipe is none, or a pattern matches no layer.

    Source:
        Jayant, Noll: Digital Coding of Waveforms, 1984, eq. 1.3 (signal to noise).
    """

    model: str
    recipe: str = KEEP
    layers: Mapping[str, str] = field(default_factory=dict)

    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(default=frozenset(), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(default_factory=lambda: METRICS, init=False)
    kind: Kind = field(default="modelled", init=False)
    pure = True
    version: str = field(init=False)

    def __post_init__(self) -> None:
        self._recipes = ModelRecipes.of(self.model, self.recipe, self.layers)
        self.reads = self._recipes.reads
        self.version = f"1-{edition_of(self.model)}"

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._recipes.check(values)

    def evaluate(self, batch: Batch) -> Metrics:
        """The means over the layers; a recipe that cannot be followed costs its rows."""
        sums, faults = sum_layers(self._recipes.parts, batch, self._noise)
        noise = sums[0] / sums[1].clip(min=1)
        decibels = -10 * np.log10(noise.clip(min=_LEAST))
        return Metrics(columns={"noise": noise, "sqnr_db": decibels}, faults=faults)

    def _noise(self, layer: str, recipe: str) -> tuple[float, float]:
        """A layer's noise, and 1 to count it."""
        return model_layers.noise(self.model, layer, recipe), 1.0
