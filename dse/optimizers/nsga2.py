"""NSGA-II: pymoo's rank and crowding selection, with the space's own variation operators."""

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
    """Build NSGA-II, with survival by rank and crowding distance; for two or three objectives.

    An infeasible trial ranks behind all feasible ones, by its total constraint violation; a trial
    that failed or cannot exist is never a parent.

    Args:
        problem: problem to optimise.
        pop_size: population size; by default four per parameter, at least 24, at most 100.
        crossover: fraction of children with two parents.
        mutation: mutation probability of each component; by default one over their number.
        steady: whether each finished trial competes at once, without waiting for a generation.

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
    finished: int,  # noqa: ARG001 - a Select
    rng: np.random.Generator,
) -> tuple[Ints, Floats]:
    """Select survivors front by front; within the last, partly selected front, by crowding."""
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
