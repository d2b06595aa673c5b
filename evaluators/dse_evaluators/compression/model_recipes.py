"""Compression recipes of a model's layers: their design parameters, checks on the layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dse.core.values import Value
from dse.errors import SpecError
from dse_evaluators.compression.layer_fit import check_fits
from dse_evaluators.compression.layer_recipes import LayerGroup, check_recipe, parts_of
from dse_evaluators.compression.quantization_aware.training_check import check_training
from dse_evaluators.compression.template import Template
from dse_evaluators.workloads.models import ModelRef, WorkloadModel, model_of
from dse_evaluators.workloads.shapes import shapes_of


@dataclass(frozen=True)
class ModelRecipes:
    """Model with the compression recipes of its layers, assigned by name patterns."""

    model: ModelRef
    recipe: str
    layers: object

    @staticmethod
    def of(model: ModelRef, recipe: str, layers: object) -> ModelRecipes:
        """Assign a compression recipe to each layer of a model, by the first matching pattern.

        Layers that no pattern matches get ``recipe``.

        Raises:
            PluginError: the model is unknown.
            SpecError: a recipe is invalid, or a pattern matches no layer.
        """
        model_of(model)
        found = ModelRecipes(model, recipe, layers)
        found.check({})
        return found

    @property
    def is_known(self) -> bool:
        """Whether the model's layers are known without calling a function of the user."""
        found = model_of(self.model)
        return isinstance(found, WorkloadModel) or found.is_known

    @cached_property
    def parts(self) -> tuple[LayerGroup, ...]:
        """Layers grouped by compression recipe.

        Raises:
            SpecError: a pattern matches none of the remaining layers.
            EvaluationError: the user's function that makes the model fails.
        """
        return parts_of(model_of(self.model).layers, self.recipe, self.layers)

    @property
    def reads(self) -> frozenset[str]:
        """Names of the design parameters in the recipes' braces."""
        return frozenset(name for one in self._templates for name in one.names)

    def check(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Check that recipes are valid for the given parameter values, and suit each layer's shape.

        Of a model whose layers are unknown, only the texts of the recipes are checked.

        Raises:
            SpecError: a text is not a recipe, no recipe fits a layer, or a list does not have one
                element per layer.
        """
        check_training(self.model, self.texts(values))
        if not self.is_known:
            for text in self.texts(values):
                check_recipe(text)
            return
        for part in self.parts:
            part.check(values)
            check_fits(part, values, shapes_of(self.model))

    def texts(self, values: Mapping[str, Sequence[Value]]) -> Iterator[str]:
        """Yield the recipes of all layers for these parameter values, as far as they are known."""
        if not self.is_known:
            for template in self._templates:
                yield from template.fillings(values, 0)
            return
        for part in self.parts:
            for place in range(len(part.layers)):
                yield from part.template.fillings(values, place)

    @property
    def _templates(self) -> tuple[Template, ...]:
        if not isinstance(self.layers, Mapping):
            hint = "recipes by pattern, as in {'conv*': 'format int8'}"
            raise SpecError(f"layers cannot be {self.layers!r}", hint=hint)
        return tuple(Template.of(text) for text in (*self.layers.values(), self.recipe))
