"""Evaluator `compression.size`: size of a model under its recipes, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse_evaluators.compression import model_layers
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.layer_sums import sum_layers
from dse_evaluators.compression.model_recipes import ModelRecipes
from dse_evaluators.compression.recipe_evaluator import SIZES
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.own.named_model import model_ref


@dataclass(kw_only=True)
class Size:
    """Size of a model compressed by recipes, without running it.

    The metrics ``size`` and ``bits_per_weight`` are those of `compression.recipe` with the same
    options. For plain formats they follow from the shapes; a layer with other operators is
    compressed once per recipe.

    Args:
        model: name of the model, or a model of yours: a path, ``{python: net.py:make}`` or, in
            Python, a ``torch.nn.Module``; see ``docs/how-to/own-model.md``.
        recipe: recipe of each layer, as in `compression.recipe`.
        layers: recipes of other layers, by name pattern; the first match applies.
        data: examples of a model of yours, which calibrated operators need.

    Error:
        None: the sizes equal those of ``compression.recipe``, without running the model.

    Example:
        options: {model: digits-cnn, recipe: "prune {kept} > huffman {bits}"}
        parameters: {kept: [0.25, 0.5], bits: ["int4:channel", fp8_e4m3]}

    Raises:
        PluginError: the model is unknown.
        SpecError: a recipe is invalid, or a pattern matches no layer.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "data")

    model: object
    recipe: str = KEEP
    layers: Mapping[str, str] = field(default_factory=dict)
    data: object = None

    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(default=frozenset(), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(default="modelled", init=False)
    pure: bool = field(init=False)
    starts: tuple[str, ...] = field(init=False)
    notes: tuple[str, ...] = field(init=False)
    missing: str = field(init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        self.provides = {name: SIZES[name] for name in ("size", "bits_per_weight")}
        self._model = model_ref(self.model, self.data)
        own = None if isinstance(self._model, str) else self._model
        self.starts = () if own is None else own.starts
        self.notes = () if own is None else own.notes
        self.missing = "" if own is None else own.missing
        self.pure = own is None or (own.is_known and not self.starts)
        self._recipes = ModelRecipes.of(self._model, self.recipe, self.layers)
        self.reads = self._recipes.reads
        self.version = f"1-{edition_of(self._model)}"

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._recipes.check(values)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return each design's size and bits per weight, and the designs that fail."""
        bits, failures = sum_layers(self._recipes.parts, batch, self._bits)
        total = bits[0] + model_layers.rest(self._model).total
        count = model_layers.count(self._model)
        return Metrics(
            columns={"size": total / 8, "bits_per_weight": bits[1] / count}, failures=failures
        )

    def _bits(self, layer: str, recipe: str) -> tuple[float, float]:
        """Return a layer's bits under a recipe: in total, and without header and padding."""
        cost = model_layers.cost(self._model, layer, recipe)
        return cost.total, cost.stored
