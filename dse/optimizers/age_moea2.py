"""AGE-MOEA-II: evolutionary search with distances along the estimated shape of the front."""

from __future__ import annotations

import numpy as np
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

from dse.core.problem import Problem
from dse.core.values import Floats, Ints
from dse.optimizers.evolutionary.constrained_ranks import Ranked
from dse.optimizers.evolutionary.evolution import Evolution
from dse.optimizers.evolutionary.front_shape import FrontShape
from dse.optimizers.evolutionary.reference_directions import many_population


def age_moea2(
    problem: Problem,
    *,
    pop_size: int | None = None,
    crossover: float = 0.9,
    mutation: float | None = None,
    steady: bool = False,
) -> Evolution:
    """Build the evolutionary algorithm AGE-MOEA-II, whose survivors are spread along the front.

    Distances between designs follow the front's estimated shape. The algorithm suits two objectives
    as well as many.

    Args:
        problem: problem to optimise.
        pop_size: population size; by default four per parameter, at least 24 and enough for
            reference directions in steps of a third (but at most 128), otherwise at most 100.
        crossover: fraction of children with two parents.
        mutation: mutation probability of each component; by default one over their number.
        steady: whether each finished trial competes at once, without waiting for a generation.

    Source:
        Panichella: An Improved Pareto Front Modeling Algorithm for Large-Scale Many-Objective
        Optimization, GECCO 2022, section 3; the score: Panichella: An Adaptive Evolutionary
        Algorithm Based on Non-Euclidean Geometry for Many-Objective Optimization, GECCO 2019.
    """
    size = many_population(problem, pop_size)
    return Evolution(
        problem,
        Ranked(by_shape, size),
        size=size,
        crossover=crossover,
        mutation=mutation,
        steady=steady,
    )


def by_shape(
    losses: Floats,  # (n, m)
    size: int,
    *,
    finished: int,  # noqa: ARG001 - a Select
    rng: np.random.Generator,  # noqa: ARG001 - nothing is drawn
) -> tuple[Ints, Floats]:
    """Select survivors front by front; in the last, partly selected front, by AGE-MOEA-II's score.

    The score is that of AGE-MOEA-II, with the shape of the first front. On the first front, a
    member scores by its distance from the members already selected; on later fronts, by its
    proximity to the ideal point.
    """
    fronts = NonDominatedSorting().do(losses, n_stop_if_ranked=size)
    shape = FrontShape.of(losses[fronts[0]])
    rows, merits, room = list[Ints](), list[Floats](), size
    for rank, front in enumerate(fronts):
        scores = shape.spread(losses[front]) if not rank else shape.nearness(losses[front])
        order = np.argsort(-scores, kind="stable")[:room]
        rows.append(front[order])
        merits.append(np.column_stack([np.full(len(order), float(rank)), -scores[order]]))
        room -= len(order)
    return np.concatenate(rows), np.concatenate(merits)
