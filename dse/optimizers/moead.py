"""MOEA/D over legal designs: one parent for each direction, who mates with its neighbours."""

from __future__ import annotations

import numpy as np
from pymoo.core.decomposition import Decomposition
from pymoo.decomposition.pbi import PBI
from pymoo.decomposition.tchebicheff import Tchebicheff

from dse.core.problem import Problem
from dse.core.values import Floats, Ints
from dse.optimizers.evolutionary.evolution import Evolution, Pool
from dse.optimizers.evolutionary.reference_directions import (
    directed_population,
    directions_of,
    extent,
)
from dse.optimizers.exact.magnitude import shares

_LEAST_WEIGHT = 1e-6
"""Of a loss in a direction: with none at all, it could be as bad as it likes."""


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
    """MOEA/D: a parent for each direction between objectives; neighbours mate.

    A finished trial goes to the direction for which it is best, and takes the places of those
    around it to whom it is superior: less outside the limits, or as much and nearer. So it does
    not matter in which order trials finish, or for whom they were bred.

    Args:
        problem: the question.
        pop_size: by default four times the number of parameters, but 24 at least, enough for
            three steps between any two objectives, and 100 at most or as many as these.
        directions: ``das-dennis``, evenly spaced, or ``energy``, exactly ``pop_size`` of them.
        neighbours: of a direction, itself among them: those who mate and are replaced; by default
            a fifth of all, as in the paper, but 3 at least.
        crossover: the share of children with two parents.
        mutation: the chance of each component to move; by default one in as many as there are.
        steady: each finished trial competes at once, instead of a generation.

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
    """Keeps for each direction the place of the one who holds it."""

    _ABROAD = 0.1
    """How often mates are of anywhere, not neighbours: 1 - delta of Li, Zhang, IEEE TEC 2009."""

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
        holders: Ints,  # (k,), changed
        losses: Floats,  # (n, m), from the ideal on
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
    """Two different ones of ``size``, ``count`` times; of one, twice this one."""
    one = rng.integers(size, size=count)
    other = rng.integers(max(size - 1, 1), size=count)
    return np.column_stack([one, np.where(size > 1, other + (other >= one), one)])
