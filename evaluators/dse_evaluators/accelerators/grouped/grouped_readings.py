"""Inputs shared by the evaluators of grouped networks: group, grouping, width and batch."""

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
"""Width that requests the one at which the network keeps its original number of MACs."""

READINGS: Mapping[str, Reading] = {
    "group": NumberInput(1, 1 << 20),
    "grouping": one_of(GROUPINGS, GROUPINGS[0]),
    "width": NumberInput(SOLVED, 8, default=SOLVED),
    "batch": NumberInput(1, 1 << 20, default=1.0, whole=True),
}
_PLAIN = Readings(READINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regrouped:
    """Grouping, width and batch size (images) of n designs."""

    grouping: Grouping
    batch: Floats  # (n,)


def check_grouping(
    network: GroupConvolutionNetwork, readings: Readings, values: Mapping[str, Sequence[Value]]
) -> None:
    """Check that the network can be regrouped with each value of the parameters of a space.

    A value of ``group`` may be a list.

    Raises:
        SpecError: a value is invalid, or the list's length is not the number of regrouped layers.
    """
    readings.check(values, {"group": int(network.grouped.sum())})


def read_grouping(network: GroupConvolutionNetwork, batch: Batch) -> Regrouped:
    """Return the grouping of n designs; where the width is :data:`SOLVED`, compute it."""
    images = _PLAIN.column("batch", batch)
    return Regrouped(grouping=_with_widths(network, batch), batch=images)


def _with_widths(network: GroupConvolutionNetwork, batch: Batch) -> Grouping:
    """Return the grouping of n designs with every width multiplier computed.

    A width that is :data:`SOLVED` is computed once per distinct grouping of the batch.
    """
    widths = _PLAIN.column("width", batch)
    grouping = _grouping(network, batch, widths)
    if not (widths == SOLVED).any():
        return grouping
    names = [name for name in batch.names if name.partition("[")[0] in ("group", "grouping")]
    among = batch.distinct(names)
    some = _grouping(network, batch.take(among.rows), widths[among.rows])
    solved = among.spread(network.same_macs_width(some))
    return grouping.with_width(np.where(widths == SOLVED, solved, widths))


def _grouping(network: GroupConvolutionNetwork, batch: Batch, width: Floats) -> Grouping:
    by_count = _PLAIN.column("grouping", batch) > 0
    return Grouping(group=_groups(network, batch), by_count=by_count, width=width)


def _groups(network: GroupConvolutionNetwork, batch: Batch) -> Floats:
    """Return the group size or count: one for all regrouped layers, (n,), or by layer, (l, n)."""
    if "group" in batch:
        return np.asarray(batch["group"], dtype=float)
    groups = np.ones((len(network.layers), len(batch)))
    for place, layer in enumerate(np.flatnonzero(network.grouped)):
        groups[layer] = batch[f"group[{place}]"]
    return groups
