"""Expected gains of measured settings, and the most promising designs that have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.batch import Batch, concatenate_batches
from dse.core.design import Design
from dse.core.preference_answers import PreferenceAnswer
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.conditional_fronts import ConditionalFront, ConditionalFrontCache
from dse.optimizers.bayesian.expected_improvement import expected_gains
from dse.optimizers.bayesian.measured_settings import MeasuredSettings, MeasuredSplit
from dse.optimizers.bayesian.metric_model import Prediction
from dse.optimizers.bayesian.posterior import Posterior
from dse.optimizers.bayesian.utility_improvement import LossScale, UtilityImprovement

_CLIMBS = (0.2, 0.06, 0.02, 0.006, 0.002)
"""Step widths of the local search, as fractions of a real parameter's range."""
_CLIMBERS = 8
_EACH = 24
_FINALISTS, _EVALUATIONS = (5, 40), 500_000
"""Least and most finalists valued on their complete conditional fronts; designs to spend on it."""


class AcquisitionValues:
    """Acquisition values of candidate settings of the parameters that measurements read.

    Each setting (combination of values) counts with its best values of the free parameters, which
    no measurement reads.

    Args:
        split: which parameters and metrics are measured, modelled or free.
        fronts: fronts over the free parameters, one for each setting.
        settings: the candidate settings, in which :meth:`climb` searches.
    """

    def __init__(
        self, split: MeasuredSplit, fronts: ConditionalFrontCache, settings: MeasuredSettings
    ) -> None:
        self._split = split
        self._fronts = fronts
        self._settings = settings
        self.utility: UtilityImprovement | None = None
        """Learnt utility, whose improvement counts instead of the hypervolume's; if any."""

    def learn_utility(
        self,
        problem: Problem,
        known: Posterior,
        trials: Sequence[Trial],
        answers: Sequence[PreferenceAnswer],
        pool: Batch,
    ) -> None:
        """Learn the user's utility from answers; without answers, use hypervolume instead.

        Args:
            problem: the problem.
            known: the posterior.
            trials: the finished trials.
            answers: the user's answers about some of them.
            pool: candidates, whose predicted losses set the scale of utility.
        """
        self.utility = None
        if not (answers and known.feasible):
            return
        scale = LossScale(
            problem=problem,
            split=self._split,
            magnitudes=(*known.magnitudes, *self._fronts.magnitudes),
        )
        least = [one.at(0.0).min() for one in known.predictions(pool)]
        conditional_fronts = [own.losses for own in self._fronts.estimate_fronts(pool)[0]]
        ideal = np.append(
            least, np.vstack(conditional_fronts).min(axis=0) if conditional_fronts else []
        )
        self.utility = UtilityImprovement.of(scale, known, trials, answers, ideal)

    def _improvement(
        self,
        known: Posterior,
        predictions: Sequence[Prediction],
        conditional_fronts: Sequence[Floats],
        groups: Ints,
        rng: np.random.Generator,
    ) -> Floats:
        """Return the expected improvement of the utility, if it was learnt, or the hypervolume."""
        if self.utility is not None:
            return self.utility.gains(predictions, conditional_fronts, groups)
        return expected_gains(known.archive, predictions, conditional_fronts, groups, rng)

    def expected_gains(
        self, known: Posterior, batch: Batch, rng: np.random.Generator, factor: float = 1.0
    ) -> Floats:
        """Return the expected gain of measuring each of k designs, (k,).

        The gain is in hypervolume or, if the user answered comparisons, in the user's utility.
        Before a feasible design is known, it is the probability of feasibility. Free parameters,
        which no measurement reads, take their best values.

        Args:
            known: the posterior.
            batch: k designs, which differ in the parameters that measurements read.
            rng: generator of the draws.
            factor: factor of the posterior's standard deviations.
        """
        conditional_fronts, groups = self._fronts.estimate_fronts(batch)
        chance = known.chances(batch)
        if not known.feasible:
            return np.where(groups >= 0, chance, 0.0)
        predictions = [one.widen(factor) for one in known.predictions(batch)]
        losses = [one.losses for one in conditional_fronts]
        gains = self._improvement(known, predictions, losses, groups, rng)
        return np.asarray(gains * chance)

    def climb(
        self,
        known: Posterior,
        pool: Batch,
        worth: Floats,
        gone: set[bytes],
        rng: np.random.Generator,
        *,
        steps: int,
    ) -> tuple[Batch, Floats]:
        """Extend a pool of designs by neighbours of the best ones, with decreasing step width.

        Args:
            known: the posterior.
            pool: designs, one per measured setting, (k,).
            worth: their expected gains, (k,).
            gone: keys of the measured settings to leave out.
            rng: generator of the draws.
            steps: number of searches, each with a smaller step width.
        """
        for width in _CLIMBS[:steps]:
            top = pool.take(np.argsort(-worth, kind="stable")[:_CLIMBERS])
            near = self._settings.around(top, width, _EACH, gone, rng)
            if len(near):
                more = self.expected_gains(known, near, rng)
                pool, worth = concatenate_batches([pool, near]), np.append(worth, more)
        return pool, worth

    def look_closely(
        self, known: Posterior, pool: Batch, worth: Floats, rng: np.random.Generator
    ) -> tuple[Batch, Floats]:
        """Return the best few candidates, with their expected gains computed precisely.

        The gains given were computed on estimated fronts over the free parameters (which no
        measurement reads); the returned ones use complete fronts.

        Args:
            known: the posterior.
            pool: k designs, which differ in the parameters that measurements read.
            worth: estimated gain of each design, (k,).
            rng: generator of the draws.
        """
        if not (self._split.free and self._split.known and known.feasible):
            return pool, worth
        count = np.clip(
            _EVALUATIONS // max(self._fronts.evaluations, 1), _FINALISTS[0], _FINALISTS[1]
        )
        top = np.argsort(-worth, kind="stable")[: int(count)]
        few = pool.take(top)
        whole = [own.losses for own in self._fronts.complete_fronts(few)]
        groups = np.array([row if len(own) else -1 for row, own in enumerate(whole)])
        conditional_fronts = [
            own if len(own) else known.archive.known_reference[None, :] for own in whole
        ]
        gains = self._improvement(known, known.predictions(few), conditional_fronts, groups, rng)
        return few, np.asarray(gains * known.chances(few))

    def complete(self, one: Batch, known: Posterior | None) -> list[Design]:
        """Return the most promising design with given measured parameters, as a list.

        The list is empty if no design with these values is feasible.
        """
        conditional_fronts, groups = self._fronts.estimate_fronts(one)
        case = self._fronts.on(one, conditional_fronts[int(groups[0])]) if groups[0] >= 0 else None
        if case is None or not len(case.losses):
            case = self._fronts.complete_fronts(one)[0]
        if not len(case.losses):
            return []
        order = _order(case, known)
        if self.utility is not None and known is not None and len(order) > 1:
            order = self._order_by_utility(self.utility, known, one, case)
        return [case.designs.design(int(row)) for row in order[:1]]

    def _order_by_utility(
        self, utility: UtilityImprovement, known: Posterior, one: Batch, case: ConditionalFront
    ) -> list[int]:
        """Return the indices of a conditional front's designs, in descending order of gain."""
        rows = np.arange(len(case.losses))
        same = [prediction.take(np.zeros_like(rows)) for prediction in known.predictions(one)]
        gains = utility.gains(same, [case.losses[[row]] for row in rows.tolist()], rows)
        return [int(row) for row in np.argsort(-gains, kind="stable")]


def _order(case: ConditionalFront, known: Posterior | None) -> list[int]:
    """Return the indices of a conditional front's designs, the most promising first.

    A conditional front is the non-dominated designs that share a measured setting. Without a
    posterior, designs nearest to the ideal point come first; with one, those whose box to the
    reference point has the largest volume.
    """
    losses = case.losses
    if losses.shape[1] == 0 or len(losses) == 1:
        return list(range(len(losses)))
    if known is None:
        span = np.where(np.ptp(losses, axis=0) > 0, np.ptp(losses, axis=0), 1.0)
        away = (((losses - losses.min(axis=0)) / span) ** 2).sum(axis=1)
        return [int(row) for row in np.argsort(away, kind="stable")]
    room = np.maximum(known.archive.known_reference - losses, 0.0).prod(axis=1)
    return [int(row) for row in np.argsort(-room, kind="stable")]
