"""Statistics over a study's trials: ``least(chip.energy, bits == 4)``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import column_of
from dse.core.values import Floats, Mask
from dse.errors import StudyError

FUNCTIONS: Mapping[str, tuple[int, int | None]] = {
    "baseline": (2, 2),
    "least": (1, 2),
    "most": (1, 2),
    "mean": (1, 2),
    "stderr": (1, 2),
    "where_least": (2, 3),
    "where_most": (2, 3),
    "count": (1, 1),
    "spearman": (2, 2),
    "hypervolume": (0, 0),
}
"""Functions over trials, each with its minimum and maximum number of arguments."""

_FEWEST_SPREAD = 2
"""Minimum number of trials for a standard error."""


def _standard_error(values: Floats) -> float:
    """Compute the standard error of the mean; the deviation is that of a sample."""
    if len(values) < _FEWEST_SPREAD:
        raise StudyError("one trial has no standard error", hint="two trials or more")
    return float(values.std(ddof=1) / math.sqrt(len(values)))


_FOLDS: Mapping[str, Callable[[Floats], float]] = {
    "least": lambda values: float(values.min()),
    "most": lambda values: float(values.max()),
    "mean": lambda values: float(values.mean()),
    "stderr": _standard_error,
}
PICKING = frozenset({"where_least", "where_most"})
"""Functions that return one formula at the trial where another formula is extreme."""

_PICKS: Mapping[str, Callable[[Floats], float]] = {
    "where_least": _FOLDS["least"],
    "where_most": _FOLDS["most"],
}
_FEWEST_RANKED = 3
"""Minimum number of trials for a rank correlation: with two it is always 1 or -1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStatistic:
    """Statistic over a study's trials, such as ``least(chip.energy, bits == 4)``.

    ``parts`` are its arguments: formulas over metrics in their own units, with values in coherent
    units. ``unit`` is the unit of the statistic. ``baseline`` is the name and design of a baseline,
    for the statistic ``baseline``.
    """

    function: str
    parts: tuple[Expression, ...] = ()
    unit: str = ""
    baseline: tuple[str, Design] | None = None

    def value(self, problem: Problem, trials: Sequence[Trial]) -> float:
        """Return the value of the statistic over the finished trials, in coherent units.

        Raises:
            StudyError: too few trials are done, or none has the required values.
        """
        if self.function == "hypervolume":
            return _volume(problem, trials)
        if self.baseline is not None:
            return self._of_baseline(*self.baseline, trials)
        done = [trial for trial in trials if trial.state is State.DONE]
        if not done:
            raise StudyError("no trial is done", hint=_first_failure(trials))
        if self.function == "count":
            return float(_holds(self.parts[0], done).sum())
        if self.function == "spearman":
            return _rank_correlation(*(_values(part, done) for part in self.parts))
        return self._pick_extreme(done) if self.function in _PICKS else self._fold_values(done)

    def _of_baseline(self, name: str, design: Design, trials: Sequence[Trial]) -> float:
        own = [trial for trial in trials if trial.design == design]
        done = [trial for trial in own if trial.state is State.DONE]
        if not done:
            why = _first_failure(own) or "the budget has no room for it"
            raise StudyError(f"the baseline {name!r} has no trial: {why}")
        value = float(_values(self.parts[0], done[:1])[0])
        if math.isnan(value):
            raise StudyError(f"for the baseline {name!r} there is no {self.parts[0].text!r}")
        return value

    def _pick_extreme(self, done: Sequence[Trial]) -> float:
        """Return the first formula's value at the trial where the second formula is extreme.

        If several trials share the extreme value, the result is the mean of the first formula over
        them.
        """
        values, by = (_values(part, done) for part in self.parts[:2])
        kept = ~(np.isnan(values) | np.isnan(by))
        if len(self.parts) > 2:
            kept &= _holds(self.parts[2], done)
        if not kept.any():
            raise StudyError(f"none of {len(done)} trials fits {self.function}(...)")
        extreme = _PICKS[self.function](by[kept])
        return float(values[kept & (by == extreme)].mean())

    def _fold_values(self, done: Sequence[Trial]) -> float:
        values = _values(self.parts[0], done)
        kept = ~np.isnan(values)
        if len(self.parts) > 1:
            kept &= _holds(self.parts[1], done)
        if not kept.any():
            raise StudyError(f"none of {len(done)} trials fits {self.function}(...)")
        return _FOLDS[self.function](values[kept])


def _values(part: Expression, done: Sequence[Trial]) -> Floats:
    """Evaluate a formula for each trial, shape (n,); NaN where a metric or parameter is missing."""
    columns = {name: column_of(done, name) for name in part.names}
    found = part.values(columns, len(done))
    values = np.asarray(found.values, dtype=np.float64)
    return values if found.absent is None else np.where(found.absent, np.nan, values)


def _holds(part: Expression, done: Sequence[Trial]) -> Mask:
    columns = {name: column_of(done, name) for name in part.names}
    return part.holds(columns, len(done), unknown=False)


def _rank_correlation(left: Floats, right: Floats) -> float:
    """Compute Spearman's rank correlation over trials with both values; ties get mean ranks."""
    from scipy.stats import rankdata  # slow (0.5 s): every command imports this module

    known = ~(np.isnan(left) | np.isnan(right))
    if known.sum() < _FEWEST_RANKED:
        raise StudyError(f"{known.sum()} trials are too few for a rank correlation")
    ranks = rankdata(left[known]), rankdata(right[known])
    if any(np.ptp(one) == 0 for one in ranks):
        raise StudyError("a rank correlation needs numbers that differ")
    return float(np.corrcoef(*ranks)[0, 1])


def _volume(problem: Problem, trials: Sequence[Trial]) -> float:
    volume = ParetoSet.of(problem, trials).hypervolume
    if volume is None:
        raise StudyError("the front has no hypervolume", hint="state 'reference:'")
    return volume


def _first_failure(trials: Sequence[Trial]) -> str:
    return next((trial.failure.reason for trial in trials if trial.failure is not None), "")
