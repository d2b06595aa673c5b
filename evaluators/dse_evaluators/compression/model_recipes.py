"""The recipes of a model's layers: what they read of a design, and whether they suit the layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dse.core.values import Value
from dse_evaluators.compression.layer_fit import check_fits
from dse_evaluators.compression.layer_recipes import LayerGroup, parts_of
from dse_evaluators.workloads.models import model_of
from dse_evaluators.workloads.shapes import shapes_of


@dataclass(frozen=True, slots=True)
class ModelRecipes:
    """A model, and its layers by what is done to them."""

    model: str
    parts: tuple[LayerGroup, ...]

    @staticmethod
    def of(model: str, recipe: str, layers: Mapping[str, str]) -> ModelRecipes:
        """Return the recipe of each layer; ``layers``, by pattern, come before ``recipe``.

        Raises:
            PluginError: there is no such model.
            SpecError: a recipe is none, or a pattern matches no layer.
        """
        found = ModelRecipes(model, parts_of(model_of(model).layers, recipe, layers))
        found.check({})
        return found

    @property
    def reads(self) -> frozenset[str]:
        """The names in braces."""
        return frozenset(name for part in self.parts for name in part.template.names)

    def check(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Nothing, if all texts that these values make are recipes.

        Raises:
            SpecError: one is none, or a list has not one entry for each layer.
        """
        for part in self.parts:
            part.check(values)
            check_fits(part, values, shapes_of(self.model))
