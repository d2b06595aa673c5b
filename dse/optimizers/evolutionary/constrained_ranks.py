"""Survival rule that prefers feasible designs and selects among them by a given method."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dse.core.values import Floats, Ints
from dse.optimizers.evolutionary.evolution import Pool


class Select(Protocol):
    """Function that selects the survivors among feasible designs, one for each method."""

    def __call__(
        self,
        losses: Floats,  # (n, m)
        size: int,
        *,
        finished: int,
        rng: np.random.Generator,
    ) -> tuple[Ints, Floats]:
        """Select up to ``size`` designs; return their indices and their merits, (selected, k).

        Merits are compared lexicographically; smaller is better. At least one row is given.
        """
        ...


class Ranked:
    """Survival rule: a method's selection of feasible designs, then infeasible designs.

    Infeasible designs fill the remaining places of the population by increasing constraint
    violation. Mates are winners of binary tournaments, by smaller violation, then by the
    selection's merit; ties are broken at random.

    Args:
        select: selection of the method.
        size: population size.
    """

    def __init__(self, select: Select, size: int) -> None:
        self._select = select
        self._size = size
        self._ranks = np.zeros(0, dtype=np.int64)

    def survivors(self, pool: Pool, rng: np.random.Generator) -> Ints:
        inside = np.flatnonzero(pool.violations == 0)
        outside = np.flatnonzero(pool.violations > 0)
        outside = outside[np.argsort(pool.violations[outside], kind="stable")]
        kept, merits = np.zeros(0, dtype=np.int64), np.zeros((0, 0))
        if len(inside):
            size = min(self._size, len(inside))
            kept, merits = self._select(pool.losses[inside], size, finished=pool.finished, rng=rng)
        stay = np.concatenate([inside[kept], outside[: self._size - len(kept)]])
        filled = np.zeros((len(stay), merits.shape[1]))
        filled[: len(merits)] = merits
        self._ranks = dense(np.column_stack([pool.violations[stay], filled]))
        return stay

    def mates(self, count: int, rng: np.random.Generator) -> Ints:
        one, other = entrants(len(self._ranks), 2 * count, rng)
        better = self._ranks[one] < self._ranks[other]
        level = self._ranks[one] == self._ranks[other]
        heads = rng.random(len(one)) < 0.5
        return np.where(better | (level & heads), one, other).reshape(count, 2)


def dense(
    rows: Floats,  # (n, k)
) -> Ints:
    """Return the dense lexicographic rank of each row of a table, (n,); equal rows share a rank."""
    _, ranks = np.unique(rows, axis=0, return_inverse=True)
    return ranks.astype(np.int64).reshape(-1)


def entrants(size: int, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the two contestants of each of ``count`` binary tournaments, (count,) indices each.

    Each of ``size`` members enters once before any enters again, in a new random order.
    """
    turns = -(-2 * count // size)
    order = np.concatenate([rng.permutation(size) for _ in range(turns)])
    pairs = order[: 2 * count].reshape(count, 2)
    return pairs[:, 0], pairs[:, 1]
