"""Numbers of a model's layers under their recipes, added up for whole batches of designs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Fault
from dse.core.values import Floats
from dse.errors import DseError
from dse_evaluators.compression.layer_recipes import LayerGroup

Told = Callable[[str, str], tuple[float, float]]
"""Two numbers of a layer, by its name, under a recipe."""


def sum_layers(
    parts: Sequence[LayerGroup], batch: Batch, told: Told
) -> tuple[Floats, dict[int, Fault]]:
    """Return the sums over the layers, (2, n), and the faults of rows without sums.

    What differs in a layer is told once, and then added up in all rows; an error of ours costs
    the rows that have its recipe.
    """
    total = np.zeros((2, len(batch)))
    faults: dict[int, Fault] = {}
    for part in parts:
        part.check_lengths(tuple(batch.names))
        for place in range(len(part.layers)):
            total += _of_layer(part, place, batch, told, faults)
    return total, faults


def _of_layer(
    part: LayerGroup, place: int, batch: Batch, told: Told, faults: dict[int, Fault]
) -> Floats:
    """The numbers of one layer in each row, (2, n); rows without are added to the faults."""
    own = {f"{name}[{place}]" for name in part.template.names} | set(part.template.names)
    among = batch.distinct(frozenset(own & batch.names))
    found = np.zeros((2, len(among.rows)))
    wrong: dict[int, Fault] = {}
    for number, row in enumerate(among.rows.tolist()):
        try:
            text = part.template.filled(batch.row(row), place)
            found[:, number] = told(part.layers[place], text)
        except DseError as error:
            wrong[number] = Fault(kind="raised", reason=str(error))
    faults |= among.spread_rows(wrong)
    return np.asarray(among.spread(found))
