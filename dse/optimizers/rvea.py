"""RVEA: pymoo's selection along reference directions, with the space's variation operators."""

from __future__ import annotations

import numpy as np
from pymoo.algorithms.moo.rvea import APDSurvival

from dse.core.problem import Problem
from dse.core.values import Floats, Ints
from dse.errors import PluginError
from dse.optimizers.evolutionary.constrained_ranks import Ranked
from dse.optimizers.evolutionary.constrained_survival import select_survivors
from dse.optimizers.evolutionary.evolution import Evolution
from dse.optimizers.evolutionary.front_shape import shares
from dse.optimizers.evolutionary.reference_directions import (
    directed_population,
    directions_of,
    extent,
)

_RENEWALS = 10
"""Number of updates of the loss scale during a run: the paper's 0.1 of all generations."""


def rvea(
    problem: Problem,
    *,
    pop_size: int | None = None,
    directions: str = "das-dennis",
    generations: int = 50,
    crossover: float = 0.9,
    mutation: float | None = None,
    steady: bool = False,
) -> Evolution:
    """Build RVEA, which keeps the best design along each reference direction; for many objectives.

    Early on, the distance to the ideal point counts most, later the angle to the direction. The
    paper adapts its directions to the ranges of the losses; here the losses are rescaled instead,
    at the same intervals.

    Args:
        problem: problem to optimise.
        pop_size: population size; by default four per parameter, at least 24 and enough for
            reference directions in steps of a third (but at most 128), otherwise at most 100.
        directions: kind of reference directions: ``das-dennis``, evenly spaced, or ``energy``,
            exactly ``pop_size`` of them.
        generations: number of generations after which the angle has its full weight; best is the
            budget of trials divided by ``pop_size``.
        crossover: fraction of children with two parents.
        mutation: mutation probability of each component; by default one over their number.
        steady: whether each finished trial competes at once, without waiting for a generation.

    Raises:
        StudyError: there is only one objective.
        PluginError: ``generations`` is below 1.

    Source:
        Cheng, Jin, Olhofer, Sendhoff: A Reference Vector Guided Evolutionary Algorithm for
        Many-Objective Optimization, IEEE Transactions on Evolutionary Computation 20(5), 2016.
    """
    size = directed_population(problem, pop_size)
    if generations < 1:
        raise PluginError(f"rvea cannot take {generations} generations", hint="take 1 or more")
    select = APDSelection(len(problem.objectives), size, kind=directions, trials=generations * size)
    return Evolution(
        problem,
        Ranked(select, size),
        size=size,
        crossover=crossover,
        mutation=mutation,
        steady=steady,
    )


class APDSelection:
    """Selection of the member with the least angle-penalised distance along each direction.

    Args:
        objectives: number of objectives.
        size: population size.
        kind: kind of reference directions, ``das-dennis`` or ``energy``.
        trials: number of trials after which the angle has its full weight.
    """

    def __init__(self, objectives: int, size: int, *, kind: str, trials: int) -> None:
        self._directions = directions_of(objectives, size, kind)
        self._trials = trials
        self._renewed = -trials
        self._extent = np.zeros(objectives), np.ones(objectives)

    def __call__(
        self,
        losses: Floats,  # (n, m)
        size: int,
        *,
        finished: int,
        rng: np.random.Generator,
    ) -> tuple[Ints, Floats]:
        if finished - self._renewed >= self._trials / _RENEWALS:
            self._extent, self._renewed = extent(losses), finished
        survival = APDSurvival(self._directions)
        progress = {"n_gen": min(finished, self._trials), "n_max_gen": self._trials}
        rows, _ = select_survivors(survival, shares(losses, *self._extent), size, rng, **progress)
        return rows, np.zeros((len(rows), 0))
