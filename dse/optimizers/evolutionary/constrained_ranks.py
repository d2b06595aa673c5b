"""Survival by feasibility first, and among the feasible by a method's own choice."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dse.core.values import Floats, Ints
from dse.optimizers.evolutionary.evolution import Pool


class Select(Protocol):
    """A method's choice among designs within all limits."""

    def __call__(
        self,
        losses: Floats,  # (n, m)
        size: int,
        *,
        told: int,
        rng: np.random.Generator,
    ) -> tuple[Ints, Floats]:
        """The rows of up to ``size`` who stay, and their merits, (rows, k).

        The first merit weighs most; smaller is better. At least one row is given.
        """
        ...


class Ranked:
    """The method chooses among those within all limits; the others fill what places are left.

    They do so by how far outside they are. Mates are winners of tournaments of two: who is less
    outside, then who has more merit, then either.

    Args:
        select: the method.
        size: of the population.
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
            kept, merits = self._select(pool.losses[inside], size, told=pool.told, rng=rng)
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
    """The rank of each row in lexicographic order, (n,); equal rows share one."""
    _, ranks = np.unique(rows, axis=0, return_inverse=True)
    return ranks.astype(np.int64).reshape(-1)


def entrants(size: int, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Pair the entrants of ``count`` tournaments: all ``size`` in turn, each time reshuffled."""
    turns = -(-2 * count // size)
    order = np.concatenate([rng.permutation(size) for _ in range(turns)])
    pairs = order[: 2 * count].reshape(count, 2)
    return pairs[:, 0], pairs[:, 1]
