"""Evaluator `compression.recipe`: a real model, compressed as a study's file states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse.errors import SpecError
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.model_recipes import ModelRecipes
from dse_evaluators.compression.template import Template, members
from dse_evaluators.formats.format import Format
from dse_evaluators.formats.names import format_of
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.models import model_of
from dse_evaluators.workloads.workload import Signals, Split, check_split

SIZES: Mapping[str, Metric] = {
    "size": Metric(name="size", unit="B", goal="minimize"),
    "bits_per_weight": Metric(name="bits_per_weight", goal="minimize"),
    "deviation": Metric(name="deviation", goal="minimize"),
}
"""What is told of every model beside its own quality."""

_WHOLE = (KEEP, "fp32")


@dataclass(kw_only=True)
class ByRecipe:
    """Compresses the layers of a trained model, and runs it on examples that it never saw.

    Names in braces are read from the design; a list gives each layer that the recipe is for its
    own entry, in the order of the model. ``size`` is what the whole model takes as bytes,
    ``bits_per_weight`` counts codes, scales and places of the layers that can be compressed, and
    ``deviation`` is the mean square of what the outputs are off by, over that of the outputs.

    Args:
        model: its name.
        recipe: what is done to each layer, such as ``format {bits}`` or ``prune 0.5 > huffman
            kmeans:4``; ``keep`` leaves it in single precision. At first weights may become zero:
            ``prune 0.1``, ``n-of-m 2/4``, ``blocks 0.5/4x4``, ``low-rank-mask 16/0.1``; then they
            are kept: ``format``, ``huffman``, ``bloomier 4/8``, ``xor 24/240``, or, where nothing
            became zero, ``gptq``, ``awq``, ``svd 16/fp16``, ``whitened 16/fp16``, ``corrected
            8/int2``, ``smooth 0.5/int8:channel`` (which ``activations`` then see), ``tucker-2
            8x8/fp16``, ``cp 8/fp16``.
        layers: other recipes, by pattern of the layers' names; the first that matches counts.
        activations: the format that each layer's inputs are rounded to.
        kv_cache: the format of the keys and values of attention.
        split: ``search``, or ``test`` for the end.

    Raises:
        PluginError: there is no such model or split.
        SpecError: a recipe or a format is none, or a pattern matches no layer.
    """

    model: str
    recipe: str = KEEP
    layers: Mapping[str, str] = field(default_factory=dict)
    activations: str = KEEP
    kv_cache: str = KEEP
    split: Split = "search"

    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(default=frozenset(), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(default="measured", init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        check_split(self.split)
        self._recipes = ModelRecipes.of(self.model, self.recipe, self.layers)
        self.provides = {**model_of(self.model).metrics, **SIZES}
        self.version = f"1-{edition_of(self.model)}"
        self._signals = {
            name: Template.of(getattr(self, name)) for name in ("activations", "kv_cache")
        }
        signals = frozenset(name for each in self._signals.values() for name in each.names)
        self.reads = self._recipes.reads | signals
        self._check_signals({})

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._recipes.check(values)
        self._check_signals(values)

    def evaluate(self, batch: Batch) -> Metrics:
        """One model after the other: a row's outcome does not depend on the batch."""
        for part in self._recipes.parts:
            part.check_lengths(tuple(batch.names))
        return one_by_one(batch, self.provides, self._measure_design)

    def recipes(self, design: Mapping[str, Value]) -> dict[str, str]:
        """Return the recipe of each layer under a design."""
        return {
            name: part.template.filled(design, place)
            for part in self._recipes.parts
            for place, name in enumerate(part.layers)
        }

    def _measure_design(self, design: Mapping[str, Value]) -> dict[str, float]:
        # What runs models takes seconds to import, and who only checks a study needs none of it.
        from dse_evaluators.compression import recipe_runner

        rounded = {name: _format(text.filled(design, 0)) for name, text in self._signals.items()}
        signals = Signals(activations=rounded["activations"], kv_cache=rounded["kv_cache"])
        return recipe_runner.measure_recipes(self.model, self.recipes(design), self.split, signals)

    def _check_signals(self, values: Mapping[str, Sequence[Value]]) -> None:
        for option, template in self._signals.items():
            for name in template.names:
                if members(name, tuple(values)):
                    raise SpecError(
                        f"{name!r} is a list, but {option} have one format in all layers"
                    )
            for text in template.fillings(values, 0):
                _format(text)


def _format(text: str) -> Format | None:
    """The format of a text; none where signals stay in single precision."""
    return None if text in _WHOLE else format_of(text)
