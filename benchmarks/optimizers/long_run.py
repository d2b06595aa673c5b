"""The best known front of a function without a published one: a long run of NSGA-II, kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dse.core.pareto import hypervolume
from dse.core.values import Floats

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "dse-engine-bench"
"""Where fronts are kept between runs."""

POPULATION = 400
GENERATIONS = 1_000

Values = Callable[[Floats], tuple[Floats, Floats]]
"""From points of the unit cube, (n, d), to losses, (n, m), and excesses, (n, l)."""


def best_hypervolume(name: str, values: Values, dimension: int, reference: Floats) -> float:
    """The hypervolume of the run's front; it is computed once and then read."""
    file = CACHE / f"{name}.npz"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, losses=_front(values, dimension))
    with np.load(file) as kept:
        return hypervolume(kept["losses"], reference)


def _front(values: Values, dimension: int) -> Floats:
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.core.problem import Problem
    from pymoo.optimize import minimize

    losses, excesses = values(np.full((1, dimension), 0.5))

    class Stated(Problem):
        def __init__(self) -> None:
            counts = {"n_obj": losses.shape[1], "n_ieq_constr": excesses.shape[1]}
            super().__init__(n_var=dimension, xl=0.0, xu=1.0, **counts)

        def _evaluate(self, x: Floats, out: dict[str, Floats], *_: object, **__: object) -> None:
            out["F"], out["G"] = values(x)

    found = minimize(Stated(), NSGA2(pop_size=POPULATION), ("n_gen", GENERATIONS), seed=1)
    return np.asarray(found.F, dtype=float)
