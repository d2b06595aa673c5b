"""Optuna's tree-structured Parzen estimator (TPE), restricted to legal designs, replayable."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from dse.core.design import Design
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.errors import PluginError
from dse.optimizers.adapters.encoded_points import axes, nearest_unseen_design
from dse.optimizers.bayesian.candidates import breed_designs, draw_designs
from dse.optimizers.bayesian.training_sample import select_trials
from dse.optimizers.support.constraints import known_admissible, trial_violations
from dse.optimizers.support.even_sequence import EvenSequence, first_designs

_CANDIDATES = 24
"""Optuna's default number of candidates."""

MOST = 1_000
"""Most trials in the sampler at the start of a block, as its cost grows with their number."""

_BLOCK = 250
"""Finished trials after which those in the sampler are selected anew, if there are too many."""


class Tpe:
    """Optimizer that uses Optuna's TPE, with a fresh sampler per design.

    It is cheap at thousands of trials too.

    Each proposal is replaced by the nearest legal design that was not asked before and violates
    no modelled constraint. Optuna handles objectives, limits, conditions and pending designs. A
    trial that failed or cannot exist counts as the worst: it belongs to the density of bad designs,
    so that fewer designs are proposed near it. Of more than 1,250 trials, the sampler receives the
    first, the best fronts and an even sample of the others.

    Args:
        problem: problem to optimise.
        initial: number of space-filling designs before the first proposal by Optuna; by default
            one per parameter, but at least 8 and at most 20.
        candidates: number of candidates drawn for each parameter, of which the best is taken.
        multivariate: whether all parameters are sampled jointly; by default only with a single
            objective.

    Raises:
        PluginError: Optuna is not installed.

    Source:
        Ozaki, Tanigaki, Watanabe, Nomura, Onishi: Multiobjective Tree-Structured Parzen
        Estimator, Journal of Artificial Intelligence Research 73, 2022.
    """

    efforts = 2  # the last one breeds designs without the sampler
    effort: int = 0
    effort_words = ("the sampler of Optuna", "offspring of the front, without the sampler")

    def __init__(
        self,
        problem: Problem,
        *,
        initial: int | None = None,
        candidates: int = _CANDIDATES,
        multivariate: bool | None = None,
    ) -> None:
        try:
            from dse.optimizers.adapters.optuna_study import TpeStudy
        except ModuleNotFoundError as error:
            raise PluginError(
                f"the optimizer 'tpe' needs {error.name}, which is not installed",
                hint='pip install "dse-engine[optuna]"',
            ) from error
        self._problem = problem
        self._make_study = partial(
            TpeStudy, problem, candidates=candidates, multivariate=multivariate
        )
        self._study = self._make_study()
        self._finished: list[Trial] = []
        self._entered = self._selected = 0
        self._initial = initial or first_designs(problem.space)
        self._sequence = EvenSequence(problem, lambda batch: known_admissible(problem, batch))
        self._taken: set[Design] = set()
        self._finished_count = self._done = 0

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        rng = self._problem.rng(self._finished_count, len(pending))
        taken = self._taken.union(pending)
        if self._is_early(pending):
            found = self._sequence.first(count, taken)
        elif self.effort == 0:
            found = self._propose_designs(count, pending, rng)
        else:
            found = breed_designs(self._problem, self._best(), count, taken=taken, rng=rng)
        if len(found) < count:
            found += draw_designs(self._problem, count - len(found), rng, taken.union(found))
        return found

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished += finished
        self._taken.update(trial.design for trial in finished)
        self._finished_count += len(finished)
        self._done += int(np.isfinite(trial_violations(self._problem, finished)).sum())

    def events(self) -> list[Event]:
        return []

    def _is_early(self, pending: Sequence[Design]) -> bool:
        """Return whether there are too few trials for a model, or no parameter that can vary."""
        asked = self._finished_count + len(pending)
        return asked < self._initial or self._done < 2 or not axes(self._problem.space)

    @property
    def rows(self) -> int:
        """Number of finished trials that the TPE sampler is given."""
        return min(MOST, self._selected) + self._entered - self._selected

    def _enter_trials(self) -> None:
        """Enter the finished trials into the sampler, or a subset of them if there are many.

        Which trials the sampler holds depends on their number alone, so that a resumed study
        proposes the same designs. After each block of trials, the sampler starts anew with another
        subset.
        """
        finished = len(self._finished)
        block = finished - finished % _BLOCK if finished >= MOST + _BLOCK else 0
        if block != self._selected:
            self._study = self._make_study()
            self._study.tell(select_trials(self._problem, self._finished[:block], MOST))
            self._selected = self._entered = block
        self._study.tell(self._finished[self._entered :])
        self._entered = finished

    def _best(self) -> list[Design]:
        """Return the designs of the front, or all of them while none is feasible."""
        front = ParetoSet.of(self._problem, self._finished).trials
        return [trial.design for trial in front or self._finished]

    def _propose_designs(
        self, count: int, pending: Sequence[Design], rng: np.random.Generator
    ) -> list[Design]:
        self._enter_trials()
        found: list[Design] = []
        while len(found) < count:
            point = self._study.suggest_point([*pending, *found], int(rng.integers(2**31)))
            design = nearest_unseen_design(
                self._problem, point, self._taken.union(pending, found), rng
            )
            if not design:
                break
            found += design
        return found
