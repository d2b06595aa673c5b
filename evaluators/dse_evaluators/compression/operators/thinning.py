"""Operators of a recipe that set weights to zero, before the last operator stores the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dse.errors import SpecError, nearest
from dse_evaluators.compression.operators import masks, prune
from dse_evaluators.compression.operators.binary_index import BinaryIndex
from dse_evaluators.compression.operators.calibrated_masks import (
    SparsityPattern,
    sparsegpt,
    wanda,
)
from dse_evaluators.compression.operators.recipe_words import pair, parts, share, whole
from dse_evaluators.formats.arrays import Single

MAGNITUDE, WANDA, SPARSEGPT = "magnitude", "wanda", "sparsegpt"

_METHODS = (MAGNITUDE, WANDA, SPARSEGPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinned:
    """Layer after a pruning operator: its weights, and how their positions are encoded."""

    weight: Single
    places: masks.MaskCode | None = None  # None: all weights are kept
    pattern: SparsityPattern | None = None  # of a mask that SparseGPT selected


@dataclass(frozen=True, slots=True, kw_only=True)
class PruningArgument:
    """Argument of ``prune`` or ``n-of-m``: the pattern, and the method that selects weights."""

    pattern: SparsityPattern
    method: str

    @staticmethod
    def of(name: str, text: str) -> PruningArgument:
        """Parse the argument of ``prune``, as in ``0.5/wanda``, or of ``n-of-m``, as in ``2/4``.

        Raises:
            SpecError: a number is missing or invalid, or the method is unknown.
        """
        numbers, slash, method = (side.strip() for side in text.rpartition("/"))
        if not slash or not method.isalpha():
            numbers, method = text, MAGNITUDE
        if method not in _METHODS:
            hint = nearest(method, _METHODS)
            if method == "learned":
                hint = "learned masks need training, which no operator of a recipe does"
            raise SpecError(f"no pruning method is called {method!r}", hint=hint)
        if name == "prune":
            return PruningArgument(pattern=SparsityPattern(density=share(numbers)), method=method)
        kept, of = (whole(side) for side in pair(numbers, "2/4"))
        return PruningArgument(pattern=SparsityPattern(kept=kept, of=of), method=method)


def uses_inputs(step: str) -> bool:
    """Return whether a pruning operator of a recipe uses calibration inputs of the layer."""
    name, argument = parts(step)
    return name in ("prune", "n-of-m") and argument.rpartition("/")[2].strip() in (WANDA, SPARSEGPT)


def _prune(weight: Single, argument: str, inputs: Single | None) -> Thinned:
    chosen = PruningArgument.of("prune", argument)
    density = chosen.pattern.density
    if density == 1:
        return Thinned(weight=weight)  # all weights are kept, so no positions are stored
    if chosen.method == MAGNITUDE:
        return Thinned(weight=prune.by_layer(weight, density), places=masks.smallest)
    return _prune_by_inputs(weight, chosen, inputs, masks.smallest)


def _n_of_m(weight: Single, argument: str, inputs: Single | None) -> Thinned:
    chosen = PruningArgument.of("n-of-m", argument)
    kept, of = chosen.pattern.kept, chosen.pattern.of
    places = masks.of_m(kept, of)
    if chosen.method == MAGNITUDE:
        return Thinned(weight=prune.n_of_m(weight, kept, of), places=places)
    return _prune_by_inputs(weight, chosen, inputs, places)


def _prune_by_inputs(
    weight: Single, chosen: PruningArgument, inputs: Single | None, places: masks.MaskCode
) -> Thinned:
    if inputs is None:
        raise SpecError(
            f"{chosen.method!r} needs calibration inputs of the layer",
            hint="'magnitude' needs none",
        )
    if chosen.method == WANDA:
        return Thinned(weight=wanda(weight, inputs, chosen.pattern), places=places)
    thin = sparsegpt(weight, inputs, chosen.pattern)
    return Thinned(weight=thin, places=places, pattern=chosen.pattern)


def _blocks(weight: Single, argument: str, _: Single | None) -> Thinned:
    density, block = pair(argument, "0.5/4x4")
    high, wide = (whole(side) for side in pair(block, "4x4", mark="x"))
    return Thinned(
        weight=prune.blocks(weight, share(density), (high, wide)),
        places=masks.of_blocks((high, wide)),
    )


def _low_rank_mask(weight: Single, argument: str, _: Single | None) -> Thinned:
    rank, density = pair(argument, "16/0.1")
    record = BinaryIndex(rank=whole(rank), density=share(density))(weight)
    kept = masks.mask_of(record).reshape(weight.shape)
    return Thinned(weight=np.where(kept, weight, np.float32(0)), places=lambda _: record)


THINNING: Mapping[str, Callable[[Single, str, Single | None], Thinned]] = {
    "prune": _prune,
    "n-of-m": _n_of_m,
    "blocks": _blocks,
    "low-rank-mask": _low_rank_mask,
}
"""Pruning operators by name: functions of weights, argument and calibration inputs."""
