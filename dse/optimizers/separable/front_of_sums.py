"""Front of sums of table rows, one row per term, by dynamic programming over the terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.pareto import nondominated
from dse.core.values import Floats, Ints

MOST = {1: 1, 2: 20_000}
"""Most partial sums kept after a term, by the number of losses; of more, an even sample."""
_MOST_OF_MANY = 2_000
"""The same with three losses or more, where dominance prunes less."""
_PAIRS = 4_000_000
"""Most sums compared at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumFront:
    """Non-dominated sums of losses, with the row of each table that each sum uses.

    ``exact`` is false if partial sums had to be left out.
    """

    rows: Ints  # (k, terms)
    sums: Floats  # (k, m)
    exact: bool = True

    def thinned(self, most: int) -> SumFront:
        """Return at most ``most`` of the sums, evenly spaced along the first loss."""
        if len(self.sums) <= most:
            return self
        keep = _even_rows(self.sums, most)
        return SumFront(rows=self.rows[keep], sums=self.sums[keep], exact=False)


def front_of_sums(tables: Sequence[Floats]) -> SumFront:
    """Return the non-dominated sums of one row from each table; of equal sums, the first.

    Partial sums are pruned after each table. A partial sum that another one dominates stays
    dominated whatever rows are added to both, so that no member of the front is lost.

    Args:
        tables: the losses that each row adds, (rows, m) for each table.

    Source:
        Nemhauser, Ullmann: Discrete Dynamic Programming and Capital Allocation, Management
        Science 15(9), 1969 (dominance pruning of partial sums).
    """
    count = tables[0].shape[1]
    most = MOST.get(count, _MOST_OF_MANY)
    rows, sums, exact = np.zeros((1, 0), dtype=np.int64), np.zeros((1, count)), True
    for table in tables:
        kept = _unbeaten(table)
        if len(sums) * len(kept) > _PAIRS:
            limit = max(1, _PAIRS // len(kept))
            keep = _even_rows(sums, limit)
            rows, sums, exact = rows[keep], sums[keep], False
        every = (sums[:, None, :] + table[kept][None, :, :]).reshape(-1, count)
        best = _unbeaten(every)
        first, second = np.divmod(best, len(kept))
        rows = np.column_stack([rows[first], kept[second]])
        sums = every[best]
        if len(sums) > most:
            keep = _even_rows(sums, most)
            rows, sums, exact = rows[keep], sums[keep], False
    return SumFront(rows=rows, sums=sums, exact=exact)


def _unbeaten(losses: Floats) -> Ints:
    """Return the indices of the non-dominated of n loss vectors, (n, m); of equal ones, one."""
    if losses.shape[1] == 1:
        return np.array([int(np.argmin(losses[:, 0]))])
    if losses.shape[1] > 2:
        found = np.flatnonzero(nondominated(losses))
        _, first = np.unique(losses[found], axis=0, return_index=True)
        return np.asarray(found[np.sort(first)])
    order = np.lexsort((losses[:, 1], losses[:, 0]))
    second = losses[order, 1]
    before = np.append(np.inf, np.minimum.accumulate(second)[:-1])
    return np.asarray(order[second < before])


def _even_rows(sums: Floats, most: int) -> Ints:
    """Return the indices of ``most`` sums whose ranks in the first loss are evenly spaced."""
    order = np.argsort(sums[:, 0], kind="stable")
    places = np.unique(np.linspace(0, len(sums) - 1, most).round().astype(np.int64))
    return np.asarray(order[places])
