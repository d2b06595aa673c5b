"""CMA-ES with margin: covariance matrix adaptation over reals and ordered values."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from cmaes import CMAwM

from dse.core.design import Design
from dse.core.parameter import Real
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.core.values import Floats
from dse.errors import PluginError, StudyError
from dse.optimizers.adapters.encoded_points import (
    axes,
    encode_design,
    has_no_order,
    nearest_unseen_design,
)
from dse.optimizers.bayesian.candidates import draw_designs
from dse.optimizers.support.constraints import weigh_trials
from dse.protocols import OptimizerTraits

_LEAST = 4
_GROWTH = 2
"""Factor of the population at each restart, as in IPOP-CMA-ES."""

_WORST = sys.float_info.max
"""Loss of a trial that violates a limit or failed; such trials are ordered by their violations."""


class CmaEs:
    """Optimizer of one objective that adapts a normal distribution to the best trials.

    It is meant for real parameters whose effects are correlated or badly scaled. Integers and
    ordinals are sampled with a margin: a least probability of their neighbouring values. Each
    sample is replaced by the nearest legal design that was not asked before. The next ``pop_size``
    finished trials, in any order, update the distribution; when it has converged, the search
    restarts at a random point with a larger population.

    A trial that violates a limit ranks behind all feasible ones, by its total violation; a trial
    that failed or cannot exist ranks last.

    Args:
        problem: problem to optimise.
        pop_size: trials per update; by default 4 + 3 ln d for d parameters, rounded down.
        sigma: initial standard deviation, as a fraction of each parameter's range.

    Raises:
        StudyError: there are several objectives, or a parameter without order or with a condition.
        PluginError: an option is out of range.

    Source:
        Hansen: The CMA Evolution Strategy: A Tutorial, 2016; Hamano, Saito, Nomura, Shirakawa:
        CMA-ES with Margin, GECCO 2022; Auger, Hansen: A Restart CMA Evolution Strategy with
        Increasing Population Size, CEC 2005.
    """

    traits = OptimizerTraits(checks_problem=True)

    def __init__(
        self, problem: Problem, *, pop_size: int | None = None, sigma: float = 0.3
    ) -> None:
        _check_problem(problem)
        if pop_size is not None and pop_size < _LEAST:
            raise PluginError(f"pop_size is {pop_size}", hint=f"take {_LEAST} or more")
        if not 0 < sigma <= 1:
            raise PluginError(f"sigma is {sigma}", hint="take a fraction of the range: 0 to 1")
        self._problem = problem
        self._sigma = sigma
        self._axes = axes(problem.space)
        self._taken: set[Design] = set()
        self._young: list[Trial] = []
        self._finished_count = 0
        middle = np.full(len(self._axes), 0.5)
        self._search = self._begin(middle, pop_size) if self._axes else None

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        rng = self._problem.rng(self._finished_count, len(pending))
        taken = self._taken.union(pending)
        found: list[Design] = []
        if self._search is not None and self._problem.space.count() != 0:
            self._search.reseed_rng(int(rng.integers(2**31)))
            while len(found) < count:
                point = self._name(self._search.ask()[0])
                design = nearest_unseen_design(self._problem, point, taken.union(found), rng)
                if not design:
                    break
                found += design
        if len(found) < count:
            found += draw_designs(self._problem, count - len(found), rng, taken.union(found))
        return found

    def tell(self, finished: Sequence[Trial]) -> None:
        for trial in finished:
            self._taken.add(trial.design)
            self._young.append(trial)
            self._finished_count += 1
            if self._search is not None and len(self._young) == self._search.population_size:
                self._update(self._search)
                self._young.clear()

    def events(self) -> list[Event]:
        return []

    def _begin(self, mean: Floats, pop_size: int | None) -> CMAwM:
        sizes = [1 if isinstance(p, Real) else len(p.values) for p in self._axes.values()]
        return CMAwM(
            mean=mean,
            sigma=self._sigma,
            bounds=np.tile([0.0, 1.0], (len(mean), 1)),
            steps=np.array([1 / (size - 1) if size > 1 else 0.0 for size in sizes]),
            population_size=pop_size,
            seed=0,
        )

    def _update(self, search: CMAwM) -> None:
        """Update the distribution from the collected trials; restart it if it has converged.

        Without any trial that has metrics, the distribution stays.
        """
        losses, violations = weigh_trials(self._problem, self._young)
        if not np.isfinite(violations).any():
            return
        loss = np.where(violations == 0, losses[:, 0], _WORST)
        order = np.lexsort((loss, violations)).tolist()
        search.tell([(self._point(self._young[row].design), float(loss[row])) for row in order])
        if search.should_stop():
            rng = self._problem.rng(self._finished_count).spawn(1)[0]
            size = _GROWTH * search.population_size
            self._search = self._begin(rng.random(len(self._axes)), size)

    def _point(self, design: Design) -> Floats:
        """Return a design as a point of the unit cube, (d,)."""
        point = encode_design(self._problem.space, design)
        return np.array(
            [float(point[name]) / _steps_of(one) for name, one in self._axes.items()], dtype=float
        )

    def _name(self, point: Floats) -> dict[str, float | int | str]:
        """Return a point of the unit cube as values by parameter.

        A real parameter has its position in its range, 0 to 1, any other parameter the rank of its
        value.
        """
        return {
            name: float(share) if isinstance(one, Real) else round(share * _steps_of(one))
            for (name, one), share in zip(self._axes.items(), point, strict=True)
        }


def _steps_of(parameter: object) -> int:
    """Return the number of steps from a parameter's first to its last value; 1 if it is real."""
    values = getattr(parameter, "values", (0, 1))
    return len(values) - 1


def _check_problem(problem: Problem) -> None:
    """Check that there is one objective, and that parameters are ordered and always active.

    Raises:
        StudyError: there are several objectives, or a parameter is unordered or conditional; the
            message names the parameters.
    """
    if len(problem.objectives) > 1:
        raise StudyError(
            f"cma-es optimizes one objective, and there are {len(problem.objectives)}",
            hint="write one formula of them as the objective, or use optimizer sms-emoa",
        )
    space = problem.space
    unordered = [p.name for p in space.parameters if not isinstance(p, Real) and has_no_order(p)]
    if unordered:
        raise StudyError(
            f"cma-es needs ordered parameters, and these are choices: {', '.join(unordered)}",
            hint="use optimizer auto, tpe or nsga2; numbers may be an 'ordinal'",
        )
    if space.conditions:
        raise StudyError(
            "cma-es needs parameters that are always active, and these have a condition: "
            + ", ".join(sorted(space.conditions)),
            hint="use optimizer auto, tpe or nsga2",
        )
