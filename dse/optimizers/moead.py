"""MOEA/D: evolutionary search with one parent per direction, which mates with its neighbours."""

from __future__ import annotations

import numpy as np
from pymoo.core.decomposition import Decomposition
from pymoo.decomposition.pbi import PBI
from pymoo.decomposition.tchebicheff import Tchebicheff

from dse.core.problem import Problem
from dse.core.values import Floats, Ints
from dse.optimizers.evolutionary.evolution import Evolution, Pool
from dse.optimizers.evolutionary.front_shape import shares
from dse.optimizers.evolutionary.reference_directions import (
    directed_population,
    directions_of,
    extent,
)

_LEAST_WEIGHT = 1e-6
"""Least weight of a loss in a direction; a loss of weight zero could grow without penalty."""


def moead(
    problem: Problem,
    *,
    pop_size: int | None = None,
    directions: str = "das-dennis",
    neighbours: int | None = None,
    crossover: float = 0.9,
    mutation: float | None = None,
    steady: bool = False,
) -> Evolution:
    """Build MOEA/D, with one parent for each direction between objectives; neighbours mate.

    A finished trial is assigned to the direction along which it scores best. It replaces the
    parents of neighbouring directions that have a larger constraint violation, or an equal one and
    a larger scalarised loss. So neither the order in which trials finish nor the direction that
    they were bred for matters.

    Args:
        problem: problem to optimise.
        pop_size: population size; by default four per parameter, at least 24 and enough for
            reference directions in steps of a third (but at most 128), otherwise at most 100.
        directions: kind of reference directions: ``das-dennis``, evenly spaced, or ``energy``,
            exactly ``pop_size`` of them.
        neighbours: number of directions, including itself, with which a direction mates and which
            its trials may replace; by default a fifth of all, as in the paper, but at least 3.
        crossover: fraction of children with two parents.
        mutation: mutation probability of each component; by default one over their number.
        steady: whether each finished trial competes at once, without waiting for a generation.

    Raises:
        StudyError: there is only one objective.

    Source:
        Zhang, Li: MOEA/D, IEEE Transactions on Evolutionary Computation 11(6), 2007; who is
        replaced: Wang, Zhang, Zhou, Gong, Jiao: Adaptive Replacement Strategies for MOEA/D, IEEE
        Transactions on Cybernetics 46(2), 2016.
    """
    size = directed_population(problem, pop_size)
    spread = directions_of(len(problem.objectives), size, directions)
    return Evolution(
        problem,
        MOEADSelection(spread, neighbours or max(3, len(spread) // 5)),
        size=size,
        crossover=crossover,
        mutation=mutation,
        steady=steady,
    )


class MOEADSelection:
    """Survival rule of MOEA/D: one parent for each reference direction, as an index."""

    _ABROAD = 0.1
    """Probability of mating outside the neighbourhood: 1 - delta of Li, Zhang, IEEE TEC 2009."""

    def __init__(
        self,
        directions: Floats,  # (k, m)
        neighbours: int,
    ) -> None:
        self._weights = np.maximum(directions, _LEAST_WEIGHT)
        gaps = np.linalg.norm(directions[:, None, :] - directions[None, :, :], axis=2)
        self._near = np.argsort(gaps, axis=1, kind="stable")[:, :neighbours]  # (k, t)
        self._value: Decomposition = Tchebicheff() if directions.shape[1] == 2 else PBI()
        self._holders = np.zeros(0, dtype=np.int64)  # (k,)

    def survivors(self, pool: Pool, rng: np.random.Generator) -> Ints:
        inside = pool.violations == 0
        ideal, span = extent(pool.losses[inside] if inside.any() else pool.losses)
        losses = shares(pool.losses, ideal, span)
        holders, first = self._holders.copy(), pool.parents
        if not len(holders):
            holders = rng.permutation(len(losses))[np.arange(len(self._weights)) % len(losses)]
            first = 0
        best = np.minimum(losses.min(axis=0), 0.0)
        for newcomer in range(first, len(losses)):
            self._settle(newcomer, holders, losses - best, pool.violations)
        stay, self._holders = np.unique(holders, return_inverse=True)
        return stay

    def mates(self, count: int, rng: np.random.Generator) -> Ints:
        directions, reach = self._near.shape
        turns = -(-count // directions)
        mine = np.concatenate([rng.permutation(directions) for _ in range(turns)])[:count]
        near = self._near[mine[:, None], _pairs(count, reach, rng)]
        abroad = rng.random(count) < self._ABROAD
        near[abroad] = _pairs(int(abroad.sum()), directions, rng)
        return self._holders[near]

    def _settle(
        self,
        newcomer: int,
        holders: Ints,  # (k,), modified in place
        losses: Floats,  # (n, m), relative to the ideal point
        violations: Floats,  # (n,)
    ) -> None:
        mine = self._value.do(losses[newcomer][None, :], weights=self._weights)
        around = self._near[int(np.argmin(mine))]
        theirs = holders[around]
        values = self._value.do(losses[theirs], weights=self._weights[around], _type="one_to_one")
        less = violations[newcomer] < violations[theirs]
        as_much = violations[newcomer] == violations[theirs]
        holders[around[less | (as_much & (mine.reshape(-1)[around] < values))]] = newcomer


def _pairs(count: int, size: int, rng: np.random.Generator) -> Ints:
    """Draw ``count`` random pairs of different indices below ``size``, (count, 2).

    If ``size`` is 1, both indices are 0.
    """
    one = rng.integers(size, size=count)
    other = rng.integers(max(size - 1, 1), size=count)
    return np.column_stack([one, np.where(size > 1, other + (other >= one), one)])
