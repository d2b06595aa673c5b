"""Compression recipes (sequences of operators) of a model's layers, and their validation."""

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
"""Recipe of a layer that stays uncompressed, in single precision."""

_TRIED = (32, 64)  # outputs and inputs of the small layer on which recipes are checked
_TRIED_DENSITY = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Layers with the same compression recipe, which may have design parameters in braces.

    A parameter that is a list has one element per layer of the group.
    """

    template: Template
    layers: tuple[str, ...]

    def check(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Check that a compression recipe is valid for all combinations of parameter values.

        Raises:
            SpecError: a text is not a recipe, or a list does not have one element per layer.
        """
        self.check_lengths(tuple(values))
        places = range(len(self.layers))
        for place in places:
            for text in self.template.fillings(values, place):
                check_recipe(text)

    def check_lengths(self, known: Sequence[str]) -> None:
        """Check that the list parameters among these names have one element per layer.

        Raises:
            SpecError: a list has another length.
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
    """Return the layers grouped by compression recipe.

    Args:
        layers: names of all layers that can be compressed.
        recipe: compression recipe of the layers that no pattern matches.
        others: recipes by name pattern, such as ``conv*``; the first match applies.

    Raises:
        SpecError: a pattern matches none of the remaining layers, or a recipe is malformed.
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
    """Check that a text is a valid compression recipe, by applying it to a small layer.

    Args:
        text: recipe of one layer.
        has_inputs: whether calibration inputs of the layer are available.

    Raises:
        SpecError: the text is not a valid recipe.
    """
    if text == KEEP:
        return
    rng = np.random.default_rng(0)
    weight = rng.normal(size=_TRIED).astype(np.float32)
    weight *= rng.random(_TRIED) < _TRIED_DENSITY  # most operators are faster on few non-zeros
    inputs = rng.normal(size=(2 * _TRIED[1], _TRIED[1])).astype(np.float32)
    try:
        compress_layer(text, weight, inputs if has_inputs else None)
    except EvaluationError:
        return  # specific to this layer: its size does not fit the blocks, or its rank is too low
    except SpecError as error:
        close = nearest(text, [KEEP])
        hint = close if close.startswith("did") else error.hint
        raise SpecError(f"{text!r} is no recipe: {error.problem}", hint=hint) from error
