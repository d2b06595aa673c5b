"""The evaluator `compression.size`: what a model takes under its recipes, without running it."""

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
    """``size`` and ``bits_per_weight`` of `compression.recipe` with the same options.

    Both are known before anything is measured. Of a plain format it is a matter of shapes; a layer
    with other operators is compressed once for each of its recipes.

    Args:
        model: its name.
        recipe: what is done to each layer.
        layers: other recipes, by pattern of the layers' names; the first that matches counts.

    Raises:
        PluginError: there is no such model.
        SpecError: a recipe is none, or a pattern matches no layer.
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
        """The sums over the layers; a recipe that cannot be followed costs its rows."""
        bits, faults = sum_layers(self._recipes.parts, batch, self._bits)
        total = bits[0] + model_layers.rest(self.model).total
        count = model_layers.count(self.model)
        return Metrics(
            columns={"size": total / 8, "bits_per_weight": bits[1] / count}, faults=faults
        )

    def _bits(self, layer: str, recipe: str) -> tuple[float, float]:
        """All bits that a layer takes, and those that papers count."""
        cost = model_layers.cost(self.model, layer, recipe)
        return cost.total, cost.stored
