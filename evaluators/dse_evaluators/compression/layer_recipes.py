"""Recipes of the layers of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np

from dse.core.values import Value
from dse.errors import EvaluationError, SpecError, nearest
from dse_evaluators.compression.operators.recipe import compress_layer
from dse_evaluators.compression.template import Template, members

KEEP = "keep"
"""The recipe of a layer that stays in single precision."""

_TRIED = (32, 64)  # outputs and inputs of the layer that recipes are tried on
_TRIED_DENSITY = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Layers with the same recipe; a list in it has one member for each of them, in order."""

    template: Template
    layers: tuple[str, ...]

    def check(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Nothing, if every text that these values make is a recipe.

        Raises:
            SpecError: one is none, or a list is not as long as there are layers.
        """
        self.check_lengths(tuple(values))
        places = range(len(self.layers))
        for place in places:
            for text in self.template.fillings(values, place):
                check_recipe(text)

    def check_lengths(self, known: Sequence[str]) -> None:
        """Nothing, if the lists among these names are as long as there are layers.

        Raises:
            SpecError: one is not.
        """
        for name in self.template.names:
            found = members(name, known)
            wanted = {f"{name}[{place}]" for place in range(len(self.layers))}
            if found and set(found) != wanted:
                raise SpecError(
                    f"{name!r} has {len(found)} entries, but {self.template.text!r} is for "
                    f"{len(self.layers)} layers",
                    hint=f"one for each of {', '.join(self.layers)}",
                )


def parts_of(layers: Sequence[str], recipe: str, others: object) -> tuple[LayerGroup, ...]:
    """The layers by what is done to them.

    Args:
        layers: all that can be compressed.
        recipe: of the layers that no pattern matches.
        others: recipes by pattern, as in ``conv*``; the first that matches counts.

    Raises:
        SpecError: a pattern matches no layer that is left, or one of the texts is none.
    """
    if not isinstance(others, Mapping):
        hint = "recipes by pattern, as in {'conv*': 'format int8'}"
        raise SpecError(f"layers cannot be {others!r}", hint=hint)
    left = list(layers)
    parts = []
    for pattern, text in others.items():
        found = tuple(name for name in left if fnmatchcase(name, pattern))
        if not found:
            raise SpecError(
                f"no layer is left that matches {pattern!r}",
                hint=nearest(pattern.replace("*", ""), left),
            )
        parts.append(LayerGroup(template=Template.of(text), layers=found))
        left = [name for name in left if name not in found]
    return (*parts, LayerGroup(template=Template.of(recipe), layers=tuple(left)))


@lru_cache(maxsize=4096)
def check_recipe(text: str, *, has_inputs: bool = True) -> None:
    """Nothing, if the text is a recipe: it is tried on a small layer.

    Args:
        text: of one layer.
        has_inputs: there are calibration inputs of the layer.

    Raises:
        SpecError: it is none.
    """
    if text == KEEP:
        return
    rng = np.random.default_rng(0)
    weight = rng.normal(size=_TRIED).astype(np.float32)
    weight *= rng.random(_TRIED) < _TRIED_DENSITY  # most operators then have less to do
    inputs = rng.normal(size=(2 * _TRIED[1], _TRIED[1])).astype(np.float32)
    try:
        compress_layer(text, weight, inputs if has_inputs else None)
    except EvaluationError:
        return  # it is about this layer: blocks that do not fit it, a rank that it does not have
    except SpecError as error:
        close = nearest(text, [KEEP])
        hint = close if close.startswith("did") else error.hint
        raise SpecError(f"{text!r} is no recipe: {error.problem}", hint=hint) from error
