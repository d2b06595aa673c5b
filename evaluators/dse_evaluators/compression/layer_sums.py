"""Sums over a model's layers of two quantities of each compressed layer, such as bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure
from dse.core.values import Floats
from dse.errors import DseError
from dse_evaluators.compression.layer_recipes import LayerGroup

LayerQuantities = Callable[[str, str], tuple[float, float]]
"""Function that returns two quantities of a layer, given its name and its recipe."""


def sum_layers(
    parts: Sequence[LayerGroup], batch: Batch, evaluate: LayerQuantities
) -> tuple[Floats, dict[int, Failure]]:
    """Sum two quantities over a model's layers in n designs, (2, n); return the failures, too.

    Each distinct recipe of a layer is evaluated once, for all designs that have it. If the
    evaluation raises a DseError, its message is returned for each of these designs, by the design's
    row.
    """
    total = np.zeros((2, len(batch)))
    failures: dict[int, Failure] = {}
    for part in parts:
        part.check_lengths(tuple(batch.names))
        for place in range(len(part.layers)):
            total += _of_layer(part, place, batch, evaluate, failures)
    return total, failures


def layer_columns(parts: Sequence[LayerGroup], batch: Batch, evaluate: LayerQuantities) -> Floats:
    """Return the first quantity of each layer in n designs, (n, layers); NaN after a failure."""
    found = []
    for part in parts:
        for place in range(len(part.layers)):
            failures: dict[int, Failure] = {}
            own = _of_layer(part, place, batch, evaluate, failures)[0]
            own[list(failures)] = np.nan
            found.append(own)
    return np.column_stack(found)


def parameters_of_layers(parts: Sequence[LayerGroup]) -> tuple[frozenset[str], ...]:
    """Return the names of the inputs that each layer's recipe may read.

    An input of the recipe is either a list with one element per layer, such as ``bits[2]``, or one
    value for all layers, ``bits``; hence each layer has both names.
    """
    return tuple(
        frozenset({f"{name}[{place}]" for name in part.template.names} | set(part.template.names))
        for part in parts
        for place in range(len(part.layers))
    )


def _of_layer(
    part: LayerGroup,
    place: int,
    batch: Batch,
    evaluate: LayerQuantities,
    failures: dict[int, Failure],
) -> Floats:
    """Return one layer's quantities in each design, (2, n); add failures to ``faults``."""
    own = {f"{name}[{place}]" for name in part.template.names} | set(part.template.names)
    among = batch.distinct(frozenset(own & batch.names))
    found = np.zeros((2, len(among.rows)))
    wrong: dict[int, Failure] = {}
    for number, row in enumerate(among.rows.tolist()):
        try:
            text = part.template.fill(batch.row(row), place)
            found[:, number] = evaluate(part.layers[place], text)
        except DseError as error:
            wrong[number] = Failure(kind="raised", reason=str(error))
    failures |= among.spread_rows(wrong)
    return np.asarray(among.spread(found))
