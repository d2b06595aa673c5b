"""Bayesian optimisation by qLogNEHVI (noisy expected hypervolume improvement) on legal designs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from dse.core.design import Design
from dse.core.encoding import encoded_designs
from dse.core.objective import Objective
from dse.core.pareto import ParetoSet, hypervolume
from dse.core.problem import Problem
from dse.core.trial import Event, State, Trial
from dse.core.values import Floats
from dse.optimizers.bayesian.acquisition_search import Search
from dse.optimizers.bayesian.candidates import breed_designs, draw_designs
from dse.optimizers.bayesian.metric_prediction import (
    Moments,
    joined,
    known_moments,
    transformed_moments,
)
from dse.optimizers.bayesian.search_effort import OFFSPRING
from dse.optimizers.bayesian.training_data import (
    MANY_OBJECTIVES,
    Scale,
    TrainingData,
    bare_metric,
    build_training_data,
)
from dse.optimizers.bayesian.training_sample import select_trials
from dse.optimizers.support.constraints import known_admissible
from dse.optimizers.support.even_sequence import EvenSequence, first_designs
from dse.optimizers.support.seeded_scope import seed_generators
from dse.protocols import OptimizerTraits

ROWS = (200, 64)
"""Most trials that the processes are fitted to, at the full effort and at the next one."""

_REFITTED = 10
"""Trials between two fits of the hyperparameters, where the processes are fitted to a subset."""


class QLogNehvi:
    """Optimizer with one Gaussian process per objective, measured or modelled, and qLogNEHVI.

    With one objective the acquisition function is qLogNEI, with more than four qLogNParEGO, and
    while no trial is feasible the probability of feasibility. Modelled limits are kept exactly.

    Args:
        problem: problem to optimise.
        initial: number of space-filling designs before the first model; by default one per
            parameter, but at least 8 and at most 20.

    Source:
        Daulton, Balandat, Bakshy: Parallel Bayesian Optimization of Multiple Noisy Objectives
        with Expected Hypervolume Improvement, NeurIPS 2021; Ament et al., NeurIPS 2023.
    """

    traits = OptimizerTraits(learns_outside=True)
    expected_gain: float | None = None
    efforts = len(ROWS) + 1  # the last one breeds designs without a surrogate
    effort: int = 0
    effort_words = (*(f"at most {most:,} trials fitted" for most in ROWS), OFFSPRING)

    def __init__(self, problem: Problem, *, initial: int | None = None) -> None:
        self._problem = problem
        self._initial = initial or first_designs(problem.space)
        self._sequence = EvenSequence(problem, lambda batch: known_admissible(problem, batch))
        self._finished: list[Trial] = []
        self._memory: tuple[tuple[int, int], TrainingData | None, Any] = ((-1, 0), None, None)
        self._fitted: tuple[tuple[int, int], Any] = ((-1, 0), None)
        self._events: list[Event] = []

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        rng = self._problem.rng(len(self._finished), len(pending))
        taken = {*(trial.design for trial in self._finished), *pending}
        self.expected_gain = None
        if len(self._finished) + len(pending) >= self._initial:
            found = self._choose(count, pending, taken, rng)
        else:
            found = self._sequence.first(count, taken)
        if len(found) < count:
            found += draw_designs(self._problem, count - len(found), rng, taken.union(found))
        return found

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished += finished

    def events(self) -> list[Event]:
        drained, self._events = self._events, []
        return drained

    def predict(self, designs: Sequence[Design]) -> dict[str, Moments]:
        """Return mean and standard error of each metric at k designs, each (k,), in its unit.

        Surrogates predict the metrics that are an objective by themselves.
        """
        with seed_generators(int(self._problem.rng(len(self._finished)).integers(2**31))):
            learnt, surrogate = self._learnt()
            if learnt is None:
                return {}
            points = encoded_designs(self._problem.space, designs)
            means, deviations = surrogate.moments(points)
        found: dict[str, Moments] = {}
        for place, objective in enumerate(self._problem.objectives):
            name, factor = bare_metric(objective.expression.node)
            if name not in self._problem.measured:
                continue
            centre, error = transformed_moments(
                means[:, place],
                deviations[:, place],
                partial(_losses, objective, learnt.scales[place]),
            )
            unit = objective.scale / factor * (1.0 if objective.goal == "minimize" else -1.0)
            found[name] = centre * unit, error * abs(unit)
        return joined(found, known_moments(self._problem, designs)) if found else {}

    def _choose(
        self,
        count: int,
        pending: Sequence[Design],
        taken: set[Design],
        rng: np.random.Generator,
    ) -> list[Design]:
        """Return designs chosen by the surrogates or, at the lowest effort, bred from the front."""
        if self.effort < len(ROWS):
            return self._choose_designs(count, pending, rng)
        known = [trial for trial in self._finished if trial.state is not State.OUTSIDE]
        front = ParetoSet.of(self._problem, known).trials
        best = [trial.design for trial in front or known]
        return breed_designs(self._problem, best, count, taken=taken, rng=rng)

    def _select_trials(self, first: int | None = None) -> list[Trial]:
        """Return the trials to train on, among the ``first`` finished ones or all of them."""
        most = ROWS[min(self.effort, len(ROWS) - 1)]
        return select_trials(self._problem, self._finished[:first], most)

    def _choose_designs(
        self, count: int, pending: Sequence[Design], rng: np.random.Generator
    ) -> list[Design]:
        """Choose designs one by one, each by acquisition value given those chosen before."""
        with seed_generators(int(rng.integers(2**31))):
            from dse.optimizers.bayesian.botorch_models import NUMERICAL

            try:
                learnt, surrogate = self._learnt()
                if learnt is None:
                    return []
                search = Search(
                    self._problem,
                    self._select_trials(),
                    learnt,
                    surrogate=surrogate,
                    taken={trial.design for trial in self._finished},
                    pending=pending,
                    rng=rng,
                )
                first = search.next()
                self.expected_gain = _share(learnt, search.worth) if first else None
                return first + [design for _ in range(1, count) for design in search.next()]
            except NUMERICAL as error:
                self.expected_gain = None
                text = f"drawn at random, because the model failed: {type(error).__name__}: {error}"
                self._events.append(Event(kind="fallback", text=text, told=len(self._finished)))
                return []

    def _learnt(self) -> tuple[TrainingData | None, Any]:  # the surrogate's type would import torch
        """Return training data and surrogate of the finished trials; cached until more finish."""
        from dse.optimizers.bayesian.botorch_models import BotorchSurrogate

        finished = len(self._finished)
        if self._memory[0] != (finished, self.effort):
            learnt = build_training_data(self._problem, self._select_trials())
            fitted = self._fitted_before(finished)
            with seed_generators(int(self._problem.rng(finished).integers(2**31))):
                surrogate = learnt and BotorchSurrogate(learnt, fitted)
            self._memory = (finished, self.effort), learnt, surrogate
        return self._memory[1:]

    def _fitted_before(self, finished: int) -> Any:
        """Return the surrogate whose hyperparameters are kept; ``None`` to fit them anew.

        The trials that it was fitted to depend on the number of finished trials alone, so that a
        resumed study suggests the same designs.
        """
        from dse.optimizers.bayesian.botorch_models import NUMERICAL, BotorchSurrogate

        if finished <= ROWS[0]:
            return None
        last = finished - finished % _REFITTED
        if self._fitted[0] != (last, self.effort):
            self._fitted = (last, self.effort), None
            seed = int(self._problem.rng(last).integers(2**31))
            with suppress(*NUMERICAL), seed_generators(seed):
                learnt = build_training_data(self._problem, self._select_trials(last))
                self._fitted = (last, self.effort), learnt and BotorchSurrogate(learnt)
        return self._fitted[1]


def _losses(objective: Objective, scale: Scale, values: Floats) -> Floats:
    """Return losses in the objective's unit from values on the surrogate's scale."""
    return objective.off_scale(scale.losses(values))


def _share(data: TrainingData, worth: float) -> float | None:
    """Return the expected gain exp(``worth``) as a fraction of the front's hypervolume.

    It is ``None`` if there is no hypervolume, or with too many objectives.
    """
    many = len(data.scales) > MANY_OBJECTIVES
    volume = hypervolume(data.front, np.zeros(len(data.scales))) if len(data.front) else 0.0
    return None if many or volume <= 0 else float(np.exp(worth) / volume)
