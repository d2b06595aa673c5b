"""Evaluator `compression.size`: size of a model under its recipes, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse_evaluators.compression import model_layers
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.layer_sums import sum_layers
from dse_evaluators.compression.model_recipes import ModelRecipes
from dse_evaluators.compression.recipe_evaluator import SIZES
from dse_evaluators.workloads.editions import edition_of


@dataclass(kw_only=True)
class Size:
    """Metrics ``size`` and ``bits_per_weight`` of `compression.recipe` with the same options.

    Neither requires a run of the model. For plain formats they follow from the shapes; a layer
    with other operators is compressed once per recipe.

    Args:
        model: name of the model.
        recipe: recipe of each layer, as in `compression.recipe`.
        layers: recipes of other layers, by name pattern; the first match applies.

    Error:
        None: the bytes of ``compression.recipe``, without running the model.

    Example:
        options: {model: digits-cnn, recipe: "prune {kept} > huffman {bits}"}
        parameters: {kept: [0.25, 0.5], bits: ["int4:channel", fp8_e4m3]}

    Raises:
        PluginError: the model is unknown.
        SpecError: a recipe is invalid, or a pattern matches no layer.
    """

    model: str
    recipe: str = KEEP
    layers: Mapping[str, str] = field(default_factory=dict)

    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(default=frozenset(), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(default="modelled", init=False)
    pure = True
    version: str = field(init=False)

    def __post_init__(self) -> None:
        self.provides = {name: SIZES[name] for name in ("size", "bits_per_weight")}
        self._recipes = ModelRecipes.of(self.model, self.recipe, self.layers)
        self.reads = self._recipes.reads
        self.version = f"1-{edition_of(self.model)}"

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._recipes.check(values)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return each design's size and bits per weight, and faults of designs that fail."""
        bits, faults = sum_layers(self._recipes.parts, batch, self._bits)
        total = bits[0] + model_layers.rest(self.model).total
        count = model_layers.count(self.model)
        return Metrics(
            columns={"size": total / 8, "bits_per_weight": bits[1] / count}, faults=faults
        )

    def _bits(self, layer: str, recipe: str) -> tuple[float, float]:
        """Return a layer's bits under a recipe: in total, and without header and padding."""
        cost = model_layers.cost(self.model, layer, recipe)
        return cost.total, cost.stored
