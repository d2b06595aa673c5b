"""NSGA-III: pymoo's niching selection, with the space's own variation operators."""

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
    """Build NSGA-III, with survival by front and least crowded direction; for many objectives.

    Ideal and extreme points are those of the parents and their children. Losses are scaled to
    these points, so that the units of the objectives do not matter.

    Args:
        problem: problem to optimise.
        pop_size: population size; by default four per parameter, at least 24 and enough for
            reference directions in steps of a third (but at most 128), otherwise at most 100.
        directions: kind of reference directions: ``das-dennis``, evenly spaced, or ``energy``,
            exactly ``pop_size`` of them.
        crossover: fraction of children with two parents.
        mutation: mutation probability of each component; by default one over their number.
        steady: whether each finished trial competes at once, without waiting for a generation.

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
    """Selection of NSGA-III: front by front, then by least crowded reference direction."""

    def __init__(self, objectives: int, size: int, kind: str) -> None:
        self._directions = directions_of(objectives, size, kind)

    def __call__(
        self,
        losses: Floats,  # (n, m)
        size: int,
        *,
        finished: int,  # noqa: ARG002 - a Select
        rng: np.random.Generator,
    ) -> tuple[Ints, Floats]:
        survival = ReferenceDirectionSurvival(self._directions)
        rows, _ = select_survivors(survival, scale_losses(losses), size, rng)
        return rows, np.zeros((len(rows), 0))
