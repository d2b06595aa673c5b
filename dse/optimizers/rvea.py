"""RVEA over legal designs: pymoo keeps the best along each direction, the space's moves vary."""

from __future__ import annotations

import numpy as np
from pymoo.algorithms.moo.rvea import APDSurvival

from dse.core.problem import Problem
from dse.core.values import Floats, Ints
from dse.errors import PluginError
from dse.optimizers.evolutionary.constrained_ranks import Ranked
from dse.optimizers.evolutionary.constrained_survival import select_survivors
from dse.optimizers.evolutionary.evolution import Evolution
from dse.optimizers.evolutionary.reference_directions import (
    directed_population,
    directions_of,
    extent,
)
from dse.optimizers.exact.magnitude import shares

_RENEWALS = 10
"""How often the scale is renewed on the way: the paper's 0.1 of all generations."""


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
    """RVEA: survival of the best along each direction; for many objectives.

    First the distance to the ideal counts most, later the angle to the direction. Where the paper
    adapts its directions to the ranges of the losses, the losses are scaled, at the same rhythm.

    Args:
        problem: the question.
        pop_size: by default four times the number of parameters, but 24 at least, enough for
            three steps between any two objectives, and 100 at most or as many as these.
        directions: ``das-dennis``, evenly spaced, or ``energy``, exactly ``pop_size`` of them.
        generations: after how many the angle counts in full: the budget of trials divided by
            ``pop_size`` is best.
        crossover: the share of children with two parents.
        mutation: the chance of each component to move; by default one in as many as there are.
        steady: each finished trial competes at once, instead of a generation.

    Raises:
        StudyError: there is only one objective.
        PluginError: there are less than one generation.

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
    """Along each direction the one at the least distance, lengthened by its angle.

    Args:
        objectives: how many there are.
        size: of the population.
        kind: of the directions.
        trials: after how many the angle counts in full.
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
        told: int,
        rng: np.random.Generator,
    ) -> tuple[Ints, Floats]:
        if told - self._renewed >= self._trials / _RENEWALS:
            self._extent, self._renewed = extent(losses), told
        survival = APDSurvival(self._directions)
        progress = {"n_gen": min(told, self._trials), "n_max_gen": self._trials}
        rows, _ = select_survivors(survival, shares(losses, *self._extent), size, rng, **progress)
        return rows, np.zeros((len(rows), 0))
