"""Evaluator `compression.noise`: relative error of compressed weights, without a model run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse_evaluators.compression import model_layers
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.layer_sums import sum_layers
from dse_evaluators.compression.model_recipes import ModelRecipes
from dse_evaluators.compression.quantization_aware.training_check import refuse_training
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.trained_models import trained_weights

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="noise", goal="minimize"),
        Metric(name="sqnr_db", goal="maximize"),
    )
}

_LEAST = 1e-15
"""Floor of the noise in decibels; non-zero errors in single precision are not below it."""


@dataclass(kw_only=True)
class Noise:
    """Relative error of the weights under recipes, as a proxy of the error of the outputs.

    ``noise`` is a layer's sum of squared errors over its sum of squared weights, averaged over the
    layers; ``sqnr_db`` is the reciprocal of ``noise``, the signal-to-noise ratio, in decibels. Each
    layer is compressed once per recipe, in milliseconds and without a run of the model, so that an
    optimizer can afford to evaluate all designs.

    Args:
        model: name of the model, or a model of yours: a path, ``{python: net.py:make}`` or, in
            Python, a ``torch.nn.Module``; see ``docs/how-to/own-model.md``.
        recipe: recipe of each layer, as in `compression.recipe`.
        layers: recipes of other layers, by name pattern; the first match applies.
        data: examples of a model of yours, which calibrated operators need.

    Error:
        None for the weights themselves. The noise correlates with quality, so an optimizer that
        reads it learns the quality sooner.

    Example:
        options: {model: digits-cnn, recipe: "format {bits}"}
        parameters: {bits: ["int8:channel", "int4:channel", fp8_e4m3]}

    Raises:
        PluginError: the model is unknown.
        SpecError: a recipe is invalid, or a pattern matches no layer.

    Source:
        Jayant, Noll: Digital Coding of Waveforms, 1984, eq. 1.3 (signal to noise).
    """

    user_options: ClassVar[Sequence[str]] = ("model", "data")

    model: object
    recipe: str = KEEP
    layers: Mapping[str, str] = field(default_factory=dict)
    data: object = None

    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(default=frozenset(), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(default_factory=lambda: METRICS, init=False)
    kind: Kind = field(default="modelled", init=False)
    pure: bool = field(init=False)
    starts: tuple[str, ...] = field(init=False)
    notes: tuple[str, ...] = field(init=False)
    missing: str = field(init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        self._model = model_ref(self.model, self.data)
        own = None if isinstance(self._model, str) else self._model
        self.starts = () if own is None else own.starts
        self.notes = () if own is None else own.notes
        self.missing = "" if own is None else own.missing
        self.pure = own is None or (own.is_known and not self.starts)
        self._recipes = ModelRecipes.of(self._model, self.recipe, self.layers)
        refuse_training(self._recipes.texts({}), "compression.noise")
        self.reads = self._recipes.reads
        self.version = f"1-{edition_of(self._model)}"

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._recipes.check(values)
        refuse_training(self._recipes.texts(values), "compression.noise")

    def evaluate(self, batch: Batch) -> Metrics:
        """Return each design's mean weight error, and the designs that fail."""
        sums, failures = sum_layers(self._recipes.parts, batch, self._noise)
        noise = sums[0] / sums[1].clip(min=1)
        decibels = -10 * np.log10(noise.clip(min=_LEAST))
        return Metrics(columns={"noise": noise, "sqnr_db": decibels}, failures=failures)

    def trained_weights(self) -> Mapping[str, str]:
        """Return the hash of the model's weights, if this machine trains them."""
        return trained_weights(self._model)

    def _noise(self, layer: str, recipe: str) -> tuple[float, float]:
        """Return a layer's relative squared error, and 1, the layer's weight in the mean."""
        return model_layers.noise(self._model, layer, recipe), 1.0
