"""Check that a compression recipe (sequence of operators) suits a layer's shape.

The layer's weights are not needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from dse.core.values import Value
from dse.errors import EvaluationError, SpecError
from dse_evaluators.compression.layer_recipes import KEEP, LayerGroup
from dse_evaluators.compression.operators import masks, prune
from dse_evaluators.compression.operators.bloomier import Bloomier
from dse_evaluators.compression.operators.dense import axis_of
from dse_evaluators.compression.operators.products import check_rank
from dse_evaluators.compression.operators.recipe_words import pair, parts, whole
from dse_evaluators.compression.operators.thinning import PruningArgument
from dse_evaluators.compression.operators.training_words import TRAINING, TrainedRecipe
from dse_evaluators.compression.operators.xor import Xor
from dse_evaluators.formats.names import format_of

Shape = tuple[int, ...]


def check_fits(
    part: LayerGroup, values: Mapping[str, Sequence[Value]], shapes: Mapping[str, Shape]
) -> None:
    """Raise SpecError if no recipe that parameter values give suits a layer's shape.

    It is no error if only some of the recipes do not fit: a constraint of the space may exclude
    them. Without such a constraint, the trials with these recipes fail.

    Raises:
        SpecError: no recipe fits a layer; the message names the layer and the last recipe tried.
    """
    for place, layer in enumerate(part.layers):
        error: EvaluationError | None = None
        for text in part.template.fillings(values, place):
            error = _misfit(text, shapes[layer])
            if error is None:
                break
        if error is not None:
            raise SpecError(f"{layer}, {text!r}: {error.problem}", hint=error.hint) from error


def _misfit(recipe: str, shape: Shape) -> EvaluationError | None:
    """Return the error that compressing a layer of this shape by the recipe would raise.

    The result is ``None`` if the recipe fits.
    """
    try:
        check_fit(recipe, shape)
    except EvaluationError as error:
        return error
    return None


@lru_cache(maxsize=4096)
def check_fit(recipe: str, shape: Shape) -> None:
    """Check that a compression recipe suits weights of some shape.

    Raises:
        EvaluationError: a rank is too large, or groups, blocks or bits do not fit.
    """
    steps = recipe.split(">") if recipe != KEEP else []
    for name, argument in map(parts, steps):
        if name in _FITS:
            _FITS[name](argument, (shape[0], math.prod(shape[1:])))
        if name == "format" and len(steps) == 1:  # else only kept weights are stored
            format_of(argument).bits(shape, axis_of(shape))
        if name in TRAINING:
            TrainedRecipe.of(name, argument).form.bits(shape, axis_of(shape))


def _rank(argument: str, table: tuple[int, int]) -> None:
    check_rank(whole(pair(argument, "16/fp16")[0]), min(table))


def _n_of_m(argument: str, table: tuple[int, int]) -> None:
    PruningArgument.of("n-of-m", argument).pattern.check(table[1])


def _blocks(argument: str, table: tuple[int, int]) -> None:
    high, wide = pair(pair(argument, "0.5/4x4")[1], "4x4", mark="x")
    prune.check_blocks(table, (whole(high), whole(wide)))


def _bloomier(argument: str, _: tuple[int, int]) -> None:
    values, cells = (whole(side) for side in pair(argument, "4/8"))
    Bloomier(value_bits=values, cell_bits=cells)(_NOTHING)


def _xor(argument: str, _: tuple[int, int]) -> None:
    seeds, spread = (whole(side) for side in pair(argument, "24/240"))
    Xor(seed_bits=seeds, spread=spread)(_NOTHING, masks.bitmap(_NOTHING != 0))


_NOTHING = np.zeros((1, 1), dtype=np.float32)
"""Minimal layer, for which an operator does little more than check its arguments."""

_FITS: Mapping[str, Callable[[str, tuple[int, int]], None]] = {
    "n-of-m": _n_of_m,
    "blocks": _blocks,
    "svd": _rank,
    "whitened": _rank,
    "corrected": _rank,
    "bloomier": _bloomier,
    "xor": _xor,
}
"""Check of each operator that needs only the numbers of the layer's outputs and inputs."""
