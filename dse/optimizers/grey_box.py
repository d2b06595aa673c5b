"""Grey-box Bayesian optimisation: surrogates for measured metrics only, models for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError

from dse.core.batch import Batch, concatenate_batches
from dse.core.design import Design
from dse.core.preference_answers import PreferenceAnswer
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.core.values import Floats
from dse.optimizers.bayesian.acquisition_values import AcquisitionValues
from dse.optimizers.bayesian.candidates import breed_designs, draw_designs, select_elite
from dse.optimizers.bayesian.conditional_fronts import ConditionalFrontCache
from dse.optimizers.bayesian.library_agreement import LibraryAgreement
from dse.optimizers.bayesian.low_fidelity_prior import FIRST, LowFidelityPrior
from dse.optimizers.bayesian.measured_settings import MeasuredSettings, MeasuredSplit
from dse.optimizers.bayesian.metric_prediction import (
    Moments,
    joined,
    known_moments,
    predict_measured,
)
from dse.optimizers.bayesian.model_fitting import ModelFitter
from dse.optimizers.bayesian.output_transform import LARGE
from dse.optimizers.bayesian.posterior import Posterior, fit_posterior, hope_after
from dse.optimizers.bayesian.search_effort import LEVELS, OFFSPRING, SearchEffort
from dse.optimizers.separable.separable_search import SeparableSearch
from dse.optimizers.support.constraints import known_admissible
from dse.optimizers.support.even_sequence import EvenSequence
from dse.optimizers.support.level_coverage import (
    LevelCoverage,
    count_first_settings,
    order_by_coverage,
)
from dse.protocols import OptimizerTraits

_CLIMBERS = 8
_SPARE = 4
"""Offspring per wanted design: some share a measured setting or have no feasible design."""
_SEQUENCE, _RARE = 512, 64
"""Space-filling designs, and designs of rare levels, from which the first ones are chosen."""
_SMALL, _DULL = 2e-3, 1e-6
"""Fractions of the hypervolume: gains below the first are doubted, below the second negligible."""
_BOLD = 4.0


class GreyBox:
    """Optimizer that measures where the expected hypervolume improvement is largest.

    Designs that agree in the parameters that measured evaluators read share one measurement; models
    give their other metrics. The acquisition value of a measurement is the hypervolume that all
    designs that share it are expected to add to the front. Each measured metric has a Gaussian
    process over the parameters that its evaluator reads; modelled metrics and limits are computed
    exactly. If everything is measured, this is expected hypervolume improvement over legal designs.

    Args:
        problem: problem to optimise.
        initial: number of space-filling measured settings before the first model; by default 6. If
            nothing is modelled, it is by default one per parameter or two per value of a
            categorical one, from 6 to 20; then the first designs cover each level (a value of a
            categorical or branching parameter) twice as soon as possible, and levels seen less
            often get every other design. A library of studies that agrees with at least 4 measured
            designs ends this phase. With modelled lower fidelities (``fidelities:``), the first 4
            designs are from the front that these predict.
        find_sums: whether measured metrics are tried as sums over the parameters without being
            declared so, where the measured settings are too many to list. A sum is used while it
            predicts left-out measurements better than a Gaussian process.

    Source:
        Emmerich, Deutz, Klinkenberg, CEC 2011 (the expected improvement of the hypervolume);
        Astudillo, Frazier: Thinking Inside the Box, 2021 (grey-box optimisation).
    """

    traits = OptimizerTraits(completes_front=True, learns_from_library=True)
    expected_gain: float | None = None
    efforts = len(LEVELS) + 1  # the last one breeds designs without a surrogate
    effort: int = 0
    effort_words = (*(level.words for level in LEVELS), OFFSPRING)
    preferences: tuple[PreferenceAnswer, ...] = ()

    def __init__(
        self, problem: Problem, *, initial: int | None = None, find_sums: bool = True
    ) -> None:
        self._problem = problem
        self._split = MeasuredSplit(problem=problem)
        is_guided = bool(problem.asked - problem.measured)
        covered = frozenset[str]() if is_guided else self._split.measured_parameters
        self._initial = initial or count_first_settings(problem.space, covered)
        self._coverage = LevelCoverage(problem.space, covered, problem.rng(0, 1))
        self._settings = MeasuredSettings(problem, self._split, self._coverage)
        self._front_cache = ConditionalFrontCache(problem, self._split, bounded=True)
        self._values = AcquisitionValues(self._split, self._front_cache, self._settings)
        self._finds_sums = find_sums and self._settings.all is None
        self._library = LibraryAgreement.of(problem, self._split)
        self._fidelities = LowFidelityPrior.of(problem, self._split)
        if self._fidelities is not None and self._fidelities.covers_objectives and initial is None:
            self._initial = min(self._initial, FIRST)
        self._sequence = EvenSequence(problem, lambda batch: known_admissible(problem, batch))
        self._finished: list[Trial] = []
        self._last_fitter: ModelFitter | None = None
        self._fitted_at = -1
        self._learnt: tuple[int, Posterior | None] = (-1, None)
        self._fitted_effort = 0
        self._events: list[Event] = []
        self._reported: set[int] = set()

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        if self._problem.space.count() == 0:
            return []
        rng = self._problem.rng(len(self._finished), len(pending))
        self.expected_gain = None
        self._forget_other_effort()
        taken = {*(trial.design for trial in self._finished), *pending}
        gone = set(self._settings.keys(self._attempted(pending)))
        found = self._ends(count, gone, pending)
        is_first = not found and len(gone) < self._initial
        if is_first and (self._library is None or not self._library.is_used(self._finished)):
            found = self._first(min(count, self._initial - len(gone)), gone, pending)
        if len(found) < count and self.effort < len(LEVELS):
            found += self._choose_designs(count - len(found), [*pending, *found], rng)
        elif len(found) < count:
            found += self._breed(count - len(found), taken.union(found), gone, rng)
        if len(found) < count:
            found += draw_designs(self._problem, count - len(found), rng, taken.union(found))
        return found

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished += finished

    def events(self) -> list[Event]:
        drained, self._events = self._events, []
        drained += [] if self._sums is None else self._sums.events(len(self._finished))
        return drained + ([] if self._library is None else self._library.events())

    def predict(self, designs: Sequence[Design]) -> dict[str, Moments]:
        """Return mean and standard error of each metric at k designs, each (k,), in its unit."""
        measured = predict_measured(self._problem, self._finished, designs)
        return joined(measured, known_moments(self._problem, designs)) if measured else {}

    def _first(self, count: int, gone: set[bytes], pending: Sequence[Design]) -> list[Design]:
        """Return designs whose measured settings fill the space and cover each level.

        The measured setting of a design is the values of the parameters that measurements read; the
        other values are those with which the design is nearest to the ideal point.
        """
        space, found = self._problem.space, list[Design]()
        even = space.batch(self._sequence.first(_SEQUENCE, ()))
        attempted = self._attempted(pending)
        if self._fidelities is not None and self._fidelities.is_used(self._finished):
            every = self._settings.distinct(
                even if self._settings.all is None else self._settings.all, gone
            )
            return self._complete(self._fidelities.choose_first(every, attempted, count), count)
        rare = self._coverage.sample_rare(_RARE, self._problem.rng(0, 2))
        several = self._settings.distinct(concatenate_batches([even, rare]), gone)
        order = order_by_coverage(self._coverage, several, attempted, len(several))
        for design in several.take(order).designs():
            if len(found) == count:
                break
            one = space.batch([design])
            key = self._settings.keys(one)[0]
            if key not in gone:
                gone.add(key)
                found += self._values.complete(one, None)[:1]
        return found

    def _complete(self, settings: Batch, count: int) -> list[Design]:
        """Return up to ``count`` designs with these measured settings, completed by models."""
        found: list[Design] = []
        for row in range(len(settings)):
            if len(found) < count:
                found += self._values.complete(settings.take(np.array([row])), None)[:1]
        return found

    def _attempted(self, pending: Sequence[Design]) -> Batch:
        """Return the designs that finished or are pending."""
        designs = [trial.design for trial in self._finished]
        return self._problem.space.batch([*designs, *pending])

    def _ends(self, count: int, gone: set[bytes], pending: Sequence[Design]) -> list[Design]:
        """Return designs with all features of the declared sums at their least or largest."""
        if self._sums is None or not self._sums.usable:
            return []
        ends = self._sums.open_ends(self._attempted(pending))
        fresh = self._settings.distinct(ends, gone)
        return self._complete(fresh, count)

    @cached_property
    def _sums(self) -> SeparableSearch | None:
        """Search with additive surrogates; ``None`` if no measured metric may be a sum."""
        return SeparableSearch.of(
            self._problem, self._split, self._front_cache, find=self._finds_sums
        )

    @property
    def _has_trusted_sums(self) -> bool:
        return self._sums is not None and self._sums.is_trusted

    def _forget_other_effort(self) -> None:
        """Forget surrogates that were fitted at another effort than the present one."""
        if self.effort != self._fitted_effort:
            self._last_fitter, self._fitted_at, self._learnt = None, -1, (-1, None)
            self._fitted_effort = self.effort

    def _breed(
        self, count: int, taken: set[Design], gone: set[bytes], rng: np.random.Generator
    ) -> list[Design]:
        """Return offspring of the front whose measured settings are new, without a surrogate."""
        best = select_elite(self._problem, self._finished).designs()
        bred = breed_designs(self._problem, best, _SPARE * count, taken=taken, rng=rng)
        new = self._settings.distinct(self._problem.space.batch(bred), gone)
        return self._complete(new, count)

    @property
    def _amounts(self) -> SearchEffort:
        return LEVELS[min(self.effort, len(LEVELS) - 1)]

    def _choose_designs(
        self, count: int, pending: Sequence[Design], rng: np.random.Generator
    ) -> list[Design]:
        try:
            known = self._posterior()
            if known is None:
                return []
            found: list[Design] = []
            for _ in range(count):
                waiting = [*pending, *found]
                one = self._best(self._condition_on_pending(known, waiting), waiting, rng)
                if one is None:
                    break
                found.append(one)
        except (LinAlgError, FloatingPointError) as error:
            text = f"drawn at random, because the model failed: {type(error).__name__}: {error}"
            self._events.append(Event(kind="fallback", text=text, told=len(self._finished)))
            return []
        return found

    def _posterior(self) -> Posterior | None:
        """Return the posterior given the finished trials, cached by their number.

        The number of finished trials alone decides whether hyperparameters are refitted.
        """
        finished = len(self._finished)
        if self._learnt[0] != finished:
            last = finished - finished % (_stride(finished) * self._amounts.stride)
            if last not in (finished, self._fitted_at):
                self._fit_posterior(last, refit=True)
            self._learnt = finished, self._fit_posterior(finished, refit=last == finished)
        return self._learnt[1]

    def _fit_posterior(self, count: int, *, refit: bool) -> Posterior | None:
        if refit:
            self._fitted_at = count
        first = self._finished[:count]
        found = fit_posterior(
            self._problem, self._split, self._front_cache, first, self._fitter, refit=refit
        )
        if self._library is not None:
            self._library.report(self._fitter.weights, first)
        if found is not None:
            self._report_magnitudes(found)
        return found

    @property
    def _fitter(self) -> ModelFitter:
        """Fitter of the surrogates at the present effort; it evaluates models."""
        if self._last_fitter is None:
            probe = self._problem.space.sample(256, self._problem.rng(0, 3))
            sums = None if self._sums is None else self._sums.sums
            most = self._amounts.rows
            self._last_fitter = ModelFitter(
                self._problem, self._split, probe, sums, library=self._library, most=most
            )
        return self._last_fitter

    def _report_magnitudes(self, known: Posterior) -> None:
        """Report objectives whose extreme values are rescaled or clipped for the surrogates."""
        for place, magnitude in zip(self._split.learnt, known.magnitudes, strict=True):
            if not magnitude.is_identity and place not in self._reported:
                self._reported.add(place)
                text = f"{self._problem.objectives[place].expression.text}: values beyond "
                text += f"{LARGE:g} {magnitude.words}"
                self._events.append(Event(kind="clipped", text=text, told=len(self._finished)))

    def _condition_on_pending(self, known: Posterior, pending: Sequence[Design]) -> Posterior:
        if not pending:
            return known
        batch = self._problem.space.batch(pending)
        return known.awaiting(
            batch, [own.losses for own in self._front_cache.complete_fronts(batch)]
        )

    def _best(
        self, known: Posterior, pending: Sequence[Design], rng: np.random.Generator
    ) -> Design | None:
        """Return the design to measure next.

        It has the measured setting of largest expected gain, completed by the most promising values
        of the other parameters.
        """
        gone = set(self._settings.keys(self._attempted(pending)))
        lacking = self._lacking(pending, gone)
        front = self._predict_front(known, gone)
        pool = self._candidate_pool(front, gone, lacking, rng)
        if not len(pool):
            return None
        known = self._move_reference(known, pool, front).on_model_scale(pool.take(np.arange(1)))
        self._values.learn_utility(self._problem, known, self._finished, self.preferences, pool)
        is_steered = self._values.utility is not None
        worth = self._values.expected_gains(known, pool, rng)
        if self._settings.all is None and not self._has_trusted_sums:
            pool, worth = self._values.climb(
                known, pool, worth, gone, rng, steps=self._amounts.climbs
            )
            if lacking.any():
                rows = self._coverage.rows_lacking(pool, lacking)
                pool, worth = pool.take(rows), worth[rows]
        wide = pool
        pool, worth = self._values.look_closely(known, pool, worth, rng)
        size = 1.0 if is_steered else known.archive.volume
        is_share = size > 0 and known.feasible and not is_steered
        self.expected_gain = float(worth.max()) / size if is_share else None
        bold = self._boldness(float(worth.max()), size)
        if bold > 1:
            pool, worth = wide, self._values.expected_gains(known, wide, rng, bold)
        for row in np.argsort(-worth, kind="stable")[:_CLIMBERS]:
            found = self._values.complete(pool.take(np.array([row])), known)
            if found:
                return found[0]
        return None

    def _lacking(self, pending: Sequence[Design], gone: set[bytes]) -> Floats:
        """Return how many more trials each level needs before its main effect counts.

        At every other trial the numbers are 0, so that promising designs are measured in between.
        They are always 0 for additive terms, and while a library, lower fidelities or preferences
        guide the search.
        """
        levels = len(self._coverage.levels)
        is_guided = self.preferences or (self._sums is not None and self._sums.usable)
        if not levels or len(gone) % 2 or is_guided:
            return np.zeros(levels)
        guides = (one for one in (self._library, self._fidelities) if one is not None)
        if any(one.is_used(self._finished) for one in guides):
            return np.zeros(levels)
        return self._coverage.lacking(self._attempted(pending))

    def _candidate_pool(
        self, front: Batch | None, gone: set[bytes], lacking: Floats, rng: np.random.Generator
    ) -> Batch:
        """Return candidates, including the predicted front; only those with lacking levels, if any.

        Args:
            front: designs of the predicted front; ``None`` without one.
            gone: keys of the measured settings to leave out.
            lacking: trials that each level lacks, (levels,).
            rng: generator of the draws.
        """
        own, is_listed = self._amounts, self._settings.all is not None
        best = None if is_listed else select_elite(self._problem, self._finished)
        pool = self._settings.pool(best, gone, rng, drawn=own.drawn, bred=own.bred)
        if front is not None:
            pool = self._settings.distinct(concatenate_batches([front, pool]), set())
        return pool.take(self._coverage.rows_lacking(pool, lacking)) if lacking.any() else pool

    def _predict_front(self, known: Posterior, gone: set[bytes]) -> Batch | None:
        """Return the unmeasured designs of the predicted front of the sums of terms, if any."""
        if self._settings.all is not None or self._sums is None:
            return None
        front = self._sums.candidates(known)
        return None if front is None else self._settings.distinct(front, gone)

    def _move_reference(self, known: Posterior, pool: Batch, front: Batch | None) -> Posterior:
        """Move the reference point beyond the predicted front, unless the user fixed it."""
        if self._problem.fixed_reference is not None:
            return known
        known = known.reaching(pool, hope_after(len(self._finished), self._problem))
        if front is None or not len(front):
            return known
        return known.covering(front, *self._front_cache.estimate_fronts(front))

    def _boldness(self, gain: float, size: float) -> float:
        """Return a factor for posterior standard deviations: above 1 if the expected gain is small.

        A Gaussian process that is wrong in a region is often overconfident there. With wider
        deviations, the next measurement goes to regions where the gain is large only if the model
        is wrong. They are wider at every other measurement if the gain is small, and at each
        measurement if it is negligible.
        """
        if gain <= _DULL * size:
            return _BOLD**2
        if self._has_trusted_sums:
            return 1.0
        return _BOLD if gain <= _SMALL * size and len(self._finished) % 2 else 1.0


def _stride(finished: int) -> int:
    """Return the number of trials between two fits of the hyperparameters.

    It is 1 below 40 trials, then one more for every 20.
    """
    return 1 + max(0, finished - 20) // 20
