"""Compression recipes of a model's layers: their design parameters, checks on the layers."""

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
    """Name of a model, and its layers grouped by compression recipe."""

    model: str
    parts: tuple[LayerGroup, ...]

    @staticmethod
    def of(model: str, recipe: str, layers: Mapping[str, str]) -> ModelRecipes:
        """Group a model's layers by compression recipe, that of the first pattern that matches.

        Layers that no pattern matches get ``recipe``.

        Raises:
            PluginError: the model is unknown.
            SpecError: a recipe is invalid, or a pattern matches no layer.
        """
        found = ModelRecipes(model, parts_of(model_of(model).layers, recipe, layers))
        found.check({})
        return found

    @property
    def reads(self) -> frozenset[str]:
        """Names of the design parameters in the recipes' braces."""
        return frozenset(name for part in self.parts for name in part.template.names)

    def check(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Check that recipes are valid for these parameter values, and that each layer fits one.

        Raises:
            SpecError: a text is not a recipe, no recipe fits a layer, or a list does not have one
                element per layer.
        """
        for part in self.parts:
            part.check(values)
            check_fits(part, values, shapes_of(self.model))
