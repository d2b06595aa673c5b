"""Expected improvement of a user's utility, learnt from comparisons of pairs of finished trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.preference_answers import PreferenceAnswer
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.utility_posterior import LearntUtility, Response, spread_rows
from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.measured_settings import MeasuredSplit
from dse.optimizers.bayesian.metric_model import Prediction
from dse.optimizers.bayesian.output_transform import Magnitude
from dse.optimizers.bayesian.posterior import Posterior

_SAMPLES = 8
"""Samples of the losses of each design, the second half of which mirrors the first."""
_COMPLETIONS = 16
"""Most designs of a conditional front that are valued."""
_CHUNK = 4_096
"""Designs that are valued at a time."""


@dataclass(frozen=True, kw_only=True)
class LossScale:
    """Scale and order of the losses in a posterior: measured ones first, then modelled ones."""

    problem: Problem
    split: MeasuredSplit
    magnitudes: tuple[Magnitude, ...]

    def natural(
        self,
        losses: Floats,  # (n, m)
    ) -> Floats:
        """Return the losses in the objectives' units and order, (n, m)."""
        found = np.empty_like(losses)
        places = (*self.split.learnt, *self.split.known)
        for column, (place, one) in enumerate(zip(places, self.magnitudes, strict=True)):
            objective = self.problem.objectives[place]
            found[:, place] = objective.off_scale(losses[:, column] * one.scale)
        return found


@dataclass(frozen=True, kw_only=True)
class UtilityImprovement:
    """Expected improvement of the learnt utility over the best design known.

    The expectation is over the posterior of the losses and the posterior of the utility function.

    Source:
        Astudillo, Frazier: Multi-attribute Bayesian Optimization with Interactive Preference
        Learning, AISTATS 2020 (expected improvement under utility uncertainty).
    """

    scale: LossScale
    utility: LearntUtility
    draws: Floats  # (s, a), standard normal

    @staticmethod
    def of(
        scale: LossScale,
        known: Posterior,
        trials: Sequence[Trial],
        answers: Sequence[PreferenceAnswer],
        ideal: Floats,  # (m,), learnt losses first
    ) -> UtilityImprovement | None:
        """Learn the user's utility from answers; ``None`` if no answer is about finished trials.

        Args:
            scale: the scale of the losses in ``known``.
            known: the posterior, with the losses attained.
            trials: the finished trials.
            answers: the user's answers about some of them.
            ideal: least losses that are expected of further designs, on that scale.
        """
        problem = scale.problem
        named = {number for one in answers for number in (one.first, one.second)}
        compared = [one for one in trials if one.number in named and one.state is State.DONE]
        losses = problem.trial_losses(compared)
        fine = np.flatnonzero(np.isfinite(losses).all(axis=1)).tolist()
        rows = {compared[row].number: row for row in fine}
        used: list[tuple[int, int, Response]] = [
            (rows[one.first], rows[one.second], "equal" if one.equal else "first")
            for one in answers
            if {one.first, one.second} <= rows.keys()
        ]
        if not used:
            return None
        attained = scale.natural(np.hstack([known.archive.learnt, known.archive.known]))
        every = np.vstack([np.nan_to_num(losses, nan=np.inf)[fine], attained])
        places = {row: place for place, row in enumerate(fine)}
        pairs = [(places[a], places[b], response) for a, b, response in used]
        half = problem.rng(0, 6).standard_normal((_SAMPLES // 2, len(scale.split.learnt)))
        return UtilityImprovement(
            scale=scale,
            utility=LearntUtility.of(every, pairs, scale.natural(ideal[None, :])[0]),
            draws=np.vstack([half, -half]),
        )

    def gains(
        self,
        predictions: Sequence[Prediction],  # a of them, each for n settings
        conditional_fronts: Sequence[Floats],  # conditional fronts, (r, b) each
        groups: Ints,  # (n,), the front of each setting; -1 without one
    ) -> Floats:
        """Return the expected improvement of utility by each of n candidate measurements, (n,).

        A candidate is a combination of values of the parameters that a measurement reads; it counts
        as the best design with these values. Of many such designs an even sample is tried.
        """
        found = np.zeros(len(groups))
        rows = np.flatnonzero(groups >= 0)
        fronts = [front[spread_rows(len(front), _COMPLETIONS)] for front in conditional_fronts]
        step = max(1, _CHUNK // max((len(front) for front in fronts), default=1))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            own = [fronts[group] for group in groups[some].tolist()]
            found[some] = self._value([one.take(some) for one in predictions], own)
        return found

    def _value(self, predictions: Sequence[Prediction], fronts: Sequence[Floats]) -> Floats:
        """Return the expected improvement by each of n settings with these completions, (n,)."""
        sizes = [len(front) for front in fronts]
        owner = np.repeat(np.arange(len(fronts)), sizes)
        known, starts = np.vstack(fronts), np.cumsum([0, *sizes[:-1]])
        total = np.zeros(len(fronts))
        for draw in self.draws:
            learnt = [one.at(shift)[owner] for one, shift in zip(predictions, draw, strict=True)]
            losses = self.scale.natural(np.column_stack([*learnt, known]))
            gains = self.utility.gains(losses)  # (u, rows)
            total += np.maximum.reduceat(gains, starts, axis=1).mean(axis=0)
        return total / len(self.draws)
