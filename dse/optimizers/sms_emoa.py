"""SMS-EMOA over legal designs: pymoo drops who adds least, the space's own moves vary."""

from __future__ import annotations

import numpy as np
from pymoo.algorithms.moo.sms import LeastHypervolumeContributionSurvival

from dse.core.problem import Problem
from dse.core.values import Floats, Ints
from dse.optimizers.evolutionary.constrained_ranks import Ranked
from dse.optimizers.evolutionary.constrained_survival import select_survivors
from dse.optimizers.evolutionary.evolution import Evolution, population
from dse.optimizers.evolutionary.reference_directions import scale_losses


def sms_emoa(
    problem: Problem,
    *,
    pop_size: int | None = None,
    crossover: float = 0.9,
    mutation: float | None = None,
    steady: bool = False,
) -> Evolution:
    """SMS-EMOA: survival by the hypervolume that each one adds; for two to four objectives.

    The contributions of a hundred take 0.2 ms with three objectives, but nearly a second with
    six, and one of the last front has to go after the other: see nsga3 or age-moea2 for those.

    Args:
        problem: the question.
        pop_size: by default four times the number of parameters, but 24 at least and 100 at most.
        crossover: the share of children with two parents.
        mutation: the chance of each component to move; by default one in as many as there are.
        steady: each finished trial competes at once, as in the paper, instead of a generation.

    Source:
        Beume, Naujoks, Emmerich: SMS-EMOA: Multiobjective Selection Based on Dominated
        Hypervolume, European Journal of Operational Research 181(3), 2007.
    """
    size = population(problem, pop_size)
    return Evolution(
        problem,
        Ranked(by_contribution, size),
        size=size,
        crossover=crossover,
        mutation=mutation,
        steady=steady,
    )


def by_contribution(
    losses: Floats,  # (n, m)
    size: int,
    *,
    told: int,  # noqa: ARG001 - a Select
    rng: np.random.Generator,
) -> tuple[Ints, Floats]:
    """Whole fronts as long as there is room; from the last, who adds least goes, one by one."""
    ends = {"ideal": np.zeros(losses.shape[1]), "nadir": np.ones(losses.shape[1])}
    survival = LeastHypervolumeContributionSurvival()
    rows, kept = select_survivors(survival, scale_losses(losses), size, rng, **ends)
    return rows, kept.get("rank").astype(np.float64)[:, None]
