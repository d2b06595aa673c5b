"""How a network is regrouped, as a design says it: what evaluators of grouped networks read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Value
from dse_evaluators.accelerators.grouped.grouped_convolution import (
    GROUPINGS,
    GroupedNetwork,
    Grouping,
)
from dse_evaluators.readings import Check, check_readings, number, word

READ = frozenset({"group"})
OPTIONAL = frozenset({"grouping", "width", "batch"})

SOLVED = 0.0
"""A width that stands for the one at which the network has its own multiplications again."""

_CHECKS: Mapping[str, Check] = {
    "group": number(1, 1 << 20),
    "grouping": word(*GROUPINGS),
    "width": number(SOLVED, 8),
    "batch": number(1, 1 << 20, whole=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Regrouped:
    """The groups of n designs, and how many images they work on at once."""

    grouping: Grouping
    batch: Floats  # (n,)


def check_grouping(
    network: GroupedNetwork, values: Mapping[str, Sequence[Value]], others: Mapping[str, Check]
) -> None:
    """Nothing, if the network can be regrouped by all of these values; ``group`` may be a list.

    Raises:
        SpecError: it cannot, or there are not as many groups as layers that are regrouped.
    """
    check_readings(values, {**_CHECKS, **others}, {"group": int(network.grouped.sum())})


def regrouped(network: GroupedNetwork, batch: Batch) -> Regrouped:
    """What the designs say, with the width solved for where they leave it open."""
    return Regrouped(
        grouping=_with_widths(network, batch), batch=batch.get("batch", 1).astype(float)
    )


def _with_widths(network: GroupedNetwork, batch: Batch) -> Grouping:
    """Each different grouping is solved for once."""
    told = batch.get("width", SOLVED).astype(float)
    grouping = _grouping(network, batch, told)
    if not (told == SOLVED).any():
        return grouping
    names = [name for name in batch.names if name.partition("[")[0] in ("group", "grouping")]
    among = batch.distinct(names)
    some = _grouping(network, batch.take(among.rows), told[among.rows])
    solved = among.spread(network.same_macs_width(some))
    return grouping.with_width(np.where(told == SOLVED, solved, told))


def _grouping(network: GroupedNetwork, batch: Batch, width: Floats) -> Grouping:
    by_count = batch.get("grouping", GROUPINGS[0]) == GROUPINGS[1]
    return Grouping(
        group=_groups(network, batch), by_count=np.asarray(by_count, dtype=bool), width=width
    )


def _groups(network: GroupedNetwork, batch: Batch) -> Floats:
    """One for all regrouped layers, (n,), or one for each, (l, n)."""
    if "group" in batch:
        return np.asarray(batch["group"], dtype=float)
    groups = np.ones((len(network.layers), len(batch)))
    for place, layer in enumerate(np.flatnonzero(network.grouped)):
        groups[layer] = batch[f"group[{place}]"]
    return groups
