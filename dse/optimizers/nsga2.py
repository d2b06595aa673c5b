"""NSGA-II over legal designs: pymoo ranks, the space's own moves vary."""

from __future__ import annotations

import numpy as np
from pymoo.operators.survival.rank_and_crowding.metrics import get_crowding_function
from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting
from pymoo.util.randomized_argsort import randomized_argsort

from dse.core.problem import Problem
from dse.core.values import Floats, Ints
from dse.optimizers.evolutionary.constrained_ranks import Ranked
from dse.optimizers.evolutionary.evolution import Evolution, population


def nsga2(
    problem: Problem,
    *,
    pop_size: int | None = None,
    crossover: float = 0.9,
    mutation: float | None = None,
    steady: bool = False,
) -> Evolution:
    """NSGA-II: survival by rank and crowding; for two or three objectives.

    A trial outside its limits ranks behind those within, by how far it is outside; one that
    failed or cannot exist is no parent.

    Args:
        problem: the question.
        pop_size: by default four times the number of parameters, but 24 at least and 100 at most.
        crossover: the share of children with two parents.
        mutation: the chance of each component to move; by default one in as many as there are.
        steady: each finished trial competes at once, instead of a generation.

    Source:
        Deb, Pratap, Agarwal, Meyarivan: A Fast and Elitist Multiobjective Genetic Algorithm:
        NSGA-II, IEEE Transactions on Evolutionary Computation 6(2), 2002.
    """
    size = population(problem, pop_size)
    return Evolution(
        problem,
        Ranked(by_rank_and_crowding, size),
        size=size,
        crossover=crossover,
        mutation=mutation,
        steady=steady,
    )


def by_rank_and_crowding(
    losses: Floats,  # (n, m)
    size: int,
    *,
    told: int,  # noqa: ARG001 - a Select
    rng: np.random.Generator,
) -> tuple[Ints, Floats]:
    """Whole fronts as long as there is room; of the last, those with the widest gaps."""
    rows, merits = [], []
    room = size
    for rank, front in enumerate(NonDominatedSorting().do(losses, n_stop_if_ranked=size)):
        cut = len(front) - room
        gaps = get_crowding_function("cd").do(losses[front], n_remove=max(cut, 0))
        order = np.arange(len(front))
        if cut > 0:
            order = randomized_argsort(gaps, order="descending", random_state=rng)[:room]
        rows.append(front[order])
        merits.append(np.column_stack([np.full(len(order), float(rank)), -gaps[order]]))
        room -= len(order)
    return np.concatenate(rows), np.concatenate(merits)
