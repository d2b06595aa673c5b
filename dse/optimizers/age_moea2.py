"""AGE-MOEA-II over legal designs: distances between designs follow the shape of the front."""

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
    """AGE-MOEA-II: survival by spread along the front's own shape; for two objectives or many.

    Args:
        problem: the question.
        pop_size: by default four times the number of parameters, but 24 at least, enough for
            three steps between any two objectives, and 100 at most or as many as these.
        crossover: the share of children with two parents.
        mutation: the chance of each component to move; by default one in as many as there are.
        steady: each finished trial competes at once, instead of a generation.

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
    told: int,  # noqa: ARG001 - a Select
    rng: np.random.Generator,  # noqa: ARG001 - nothing is drawn
) -> tuple[Ints, Floats]:
    """Whole fronts as long as there is room; of the last, those with the best scores.

    The first front's shape measures all: its own members score by how far they are from others,
    those of later fronts by how near they are to the ideal.
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
