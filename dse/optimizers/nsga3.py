"""NSGA-III over legal designs: pymoo fills niches, the space's own moves vary."""

from __future__ import annotations

import numpy as np
from pymoo.algorithms.moo.nsga3 import ReferenceDirectionSurvival

from dse.core.problem import Problem
from dse.core.values import Floats, Ints
from dse.optimizers.evolutionary.constrained_ranks import Ranked
from dse.optimizers.evolutionary.constrained_survival import select_survivors
from dse.optimizers.evolutionary.evolution import Evolution
from dse.optimizers.evolutionary.reference_directions import (
    directed_population,
    directions_of,
    scale_losses,
)


def nsga3(
    problem: Problem,
    *,
    pop_size: int | None = None,
    directions: str = "das-dennis",
    crossover: float = 0.9,
    mutation: float | None = None,
    steady: bool = False,
) -> Evolution:
    """NSGA-III: survival by front and by the least crowded direction; for many objectives.

    Ideal and extreme points are those of the parents and their children, in losses scaled to
    them, so that the units of the objectives do not matter.

    Args:
        problem: the question.
        pop_size: by default four times the number of parameters, but 24 at least, enough for
            three steps between any two objectives, and 100 at most or as many as these.
        directions: ``das-dennis``, evenly spaced, or ``energy``, exactly ``pop_size`` of them.
        crossover: the share of children with two parents.
        mutation: the chance of each component to move; by default one in as many as there are.
        steady: each finished trial competes at once, instead of a generation.

    Raises:
        StudyError: there is only one objective.

    Source:
        Deb, Jain: An Evolutionary Many-Objective Optimization Algorithm Using
        Reference-Point-Based Nondominated Sorting Approach, Part I, IEEE Transactions on
        Evolutionary Computation 18(4), 2014.
    """
    size = directed_population(problem, pop_size)
    return Evolution(
        problem,
        Ranked(Niches(len(problem.objectives), size, directions), size),
        size=size,
        crossover=crossover,
        mutation=mutation,
        steady=steady,
    )


class Niches:
    """Whole fronts as long as there is room; of the last, those whose directions have fewest."""

    def __init__(self, objectives: int, size: int, kind: str) -> None:
        self._directions = directions_of(objectives, size, kind)

    def __call__(
        self,
        losses: Floats,  # (n, m)
        size: int,
        *,
        told: int,  # noqa: ARG002 - a Select
        rng: np.random.Generator,
    ) -> tuple[Ints, Floats]:
        survival = ReferenceDirectionSurvival(self._directions)
        rows, _ = select_survivors(survival, scale_losses(losses), size, rng)
        return rows, np.zeros((len(rows), 0))
