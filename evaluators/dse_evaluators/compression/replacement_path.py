"""Evaluator `compression.replacement-path`: a model that follows the free memory layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.compression.layer_recipes import check_recipe
from dse_evaluators.compression.recipe_evaluator import SIZES
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import NumberInput, one_of
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.models import model_of
from dse_evaluators.workloads.workload import Signals, Split, check_split

ORDERS = ("sensitivity", "reverse", "model", "random")
_MOST_SEEDS = 10**6
_STEPS = (
    Metric(name="storage", unit="B", goal="minimize"),
    Metric(name="mean_step", unit="B", goal="minimize"),
    Metric(name="largest_step", unit="B", goal="minimize"),
    Metric(name="switch_step", unit="B"),
    Metric(name="ensemble_storage", unit="B"),
)


class ReplacementPath(
    DeclaredEvaluator,
    reads={
        "order": one_of(ORDERS, ORDERS[0]),
        "order_seed": NumberInput(0, _MOST_SEEDS, default=0, whole=True),
    },
    provides=(),
    version="",
    kind="measured",
):
    """Quality of a model whose layers switch from a wide to a narrow format one at a time.

    Each model on the path has the narrow layers of the one before it, and one more. Quality metrics
    and ``deviation`` are means over the memory footprint between the two pure models (all wide, all
    narrow), by the trapezoid rule. ``storage`` is the sum of the sizes of both pure models,
    ``ensemble_storage`` the sum of the sizes of all models on the path. ``mean_step`` and
    ``largest_step`` are the mean and the largest difference of the sizes of two successive models,
    ``switch_step`` is the difference of the sizes of both pure models. The order ``sensitivity``
    switches first the layers that, when they alone are narrow, raise the squared error of the
    outputs on the split ``search`` least per byte saved; ``reverse`` switches these layers last;
    ``random`` has a seed, ``order_seed``.

    Args:
        model: name of a built-in model.
        wide: recipe of each layer before it switches.
        narrow: recipe of each layer after it has switched.
        split: examples for the metrics: ``search``, or ``test``.

    Limits:
        Layers + 1 evaluations of the model a design; as many once for the sensitivities.

    Error:
        Exact on the examples of the split.

    Example:
        options: {model: shakespeare-lm}
        parameters: {order: [sensitivity, random], order_seed: [0, 1]}

    Source:
        Chai et al.: FlexQuant: Elastic Quantization Framework for Locally Hosted LLM on Edge
        Devices, 2025 (nested replacement; there, a tree search finds the path).

    Raises:
        PluginError: the model or the split is unknown.
        SpecError: a recipe is invalid.
    """

    model: str = "shakespeare-lm"
    wide: str = "format int8:channel"
    narrow: str = "format int3:channel"
    split: Split = "search"

    def __post_init__(self) -> None:
        check_split(self.split)
        for recipe in (self.wide, self.narrow):
            check_recipe(recipe)
        metrics = {**model_of(self.model).metrics, "deviation": SIZES["deviation"]}
        self.provides = {**metrics, **{one.name: one for one in _STEPS}}
        self.version = f"1-{edition_of(self.model)}"
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n paths, (n,) by name; each path is measured separately."""
        return one_by_one(batch, self.provides, self._measure_path)

    def _measure_path(self, design: Mapping[str, Value]) -> dict[str, float]:
        # Imported here: it takes seconds, and checking a study does not need it.
        from dse_evaluators.compression.recipe_runner import measure_recipes

        layers = model_of(self.model).layers
        order = self._order(str(design.get("order", ORDERS[0])), int(design.get("order_seed", 0)))
        recipes = dict.fromkeys(layers, self.wide)
        found = [measure_recipes(self.model, recipes, self.split, Signals())]
        for name in order:
            recipes[name] = self.narrow
            found.append(measure_recipes(self.model, recipes, self.split, Signals()))
        sizes = np.array([one["size"] for one in found])
        steps = sizes[:-1] - sizes[1:]
        names = self.provides.keys() - {one.name for one in _STEPS}
        means = {
            name: average_over(sizes, np.array([one[name] for one in found])) for name in names
        }
        return {
            **means,
            "storage": float(sizes[0] + sizes[-1]),
            "mean_step": float(steps.mean()),
            "largest_step": float(steps.max()),
            "switch_step": float(sizes[0] - sizes[-1]),
            "ensemble_storage": float(sizes.sum()),
        }

    def _order(self, order: str, seed: int) -> Sequence[str]:
        layers = model_of(self.model).layers
        if order == "model":
            return layers
        if order == "random":
            return [layers[place] for place in np.random.default_rng(seed).permutation(len(layers))]
        ranked = sorted(layers, key=_sensitivities(self.model, self.wide, self.narrow).__getitem__)
        return ranked if order == "sensitivity" else ranked[::-1]


def average_over(sizes: Floats, values: Floats) -> float:
    """Return the mean over sizes of the piecewise linear function through these values.

    Args:
        sizes: bytes of each model on the path, (n,), descending.
        values: a metric of each model, (n,).
    """
    widths = sizes[:-1] - sizes[1:]
    return float((widths * (values[:-1] + values[1:]) / 2).sum() / widths.sum())


@cache
def _sensitivities(model: str, wide: str, narrow: str) -> Mapping[str, float]:
    """Return the rise of the outputs' squared error per byte saved by each layer, narrow alone."""
    from dse_evaluators.compression.recipe_runner import measure_recipes

    recipes = dict.fromkeys(model_of(model).layers, wide)
    whole = measure_recipes(model, recipes, "search", Signals())
    found = {}
    for name in recipes:
        one = measure_recipes(model, {**recipes, name: narrow}, "search", Signals())
        found[name] = (one["deviation"] - whole["deviation"]) / (whole["size"] - one["size"])
    return found
