"""Regrouping of a network by a design: the inputs of evaluators of grouped networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Value
from dse_evaluators.accelerators.grouped.grouped_convolution import (
    GROUPINGS,
    GroupConvolutionNetwork,
    Grouping,
)
from dse_evaluators.reading_table import NumberInput, Reading, Readings, one_of

SOLVED = 0.0
"""A width that stands for the one at which the network has its own multiplications again."""

READINGS: Mapping[str, Reading] = {
    "group": NumberInput(1, 1 << 20),
    "grouping": one_of(GROUPINGS, GROUPINGS[0]),
    "width": NumberInput(SOLVED, 8, default=SOLVED),
    "batch": NumberInput(1, 1 << 20, default=1.0, whole=True),
}
_PLAIN = Readings(READINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regrouped:
    """The groups of n designs, and how many images they work on at once."""

    grouping: Grouping
    batch: Floats  # (n,)


def check_grouping(
    network: GroupConvolutionNetwork, readings: Readings, values: Mapping[str, Sequence[Value]]
) -> None:
    """Nothing, if the network can be regrouped by all of these values; ``group`` may be a list.

    Raises:
        SpecError: it cannot, or there are not as many groups as layers that are regrouped.
    """
    readings.check(values, {"group": int(network.grouped.sum())})


def read_grouping(network: GroupConvolutionNetwork, batch: Batch) -> Regrouped:
    """Read the regrouping of the designs, solving for the width where they leave it open."""
    images = _PLAIN.column("batch", batch)
    return Regrouped(grouping=_with_widths(network, batch), batch=images)


def _with_widths(network: GroupConvolutionNetwork, batch: Batch) -> Grouping:
    """Each different grouping is solved for once."""
    told = _PLAIN.column("width", batch)
    grouping = _grouping(network, batch, told)
    if not (told == SOLVED).any():
        return grouping
    names = [name for name in batch.names if name.partition("[")[0] in ("group", "grouping")]
    among = batch.distinct(names)
    some = _grouping(network, batch.take(among.rows), told[among.rows])
    solved = among.spread(network.same_macs_width(some))
    return grouping.with_width(np.where(told == SOLVED, solved, told))


def _grouping(network: GroupConvolutionNetwork, batch: Batch, width: Floats) -> Grouping:
    by_count = _PLAIN.column("grouping", batch) > 0
    return Grouping(group=_groups(network, batch), by_count=by_count, width=width)


def _groups(network: GroupConvolutionNetwork, batch: Batch) -> Floats:
    """One for all regrouped layers, (n,), or one for each, (l, n)."""
    if "group" in batch:
        return np.asarray(batch["group"], dtype=float)
    groups = np.ones((len(network.layers), len(batch)))
    for place, layer in enumerate(np.flatnonzero(network.grouped)):
        groups[layer] = batch[f"group[{place}]"]
    return groups
