"""Front of a study on the test split: objectives, standard errors, indistinguishable designs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dse.core.batch import Column
from dse.core.judged_trials import JudgedTrial
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats, Mask

WIDTH = 2.0
"""Number of standard errors within which two values cannot be distinguished."""

_MOST_COMPARED = 1_000
"""Largest number of designs that are compared with one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRow:
    """Result of a design of the front on the test split.

    Args:
        trial: the trial on the front.
        values: the trial's objectives on the test split, in their own units and signs; NaN if
            unknown.
        stderr: standard errors of the values; 0 for an objective that does not depend on the test
            split, ``None`` if unknown.
        feasible: whether the trial keeps all limits on the test split.
        alike: numbers of the other trials that cannot be distinguished from this trial: in each
            objective that depends on the test split they differ by at most two standard errors of
            the difference.
        failure: why the trial could not be measured; empty if it was measured.
    """

    trial: int
    values: tuple[float, ...] = ()
    stderr: tuple[float | None, ...] = ()
    feasible: bool = False
    alike: tuple[int, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedFront:
    """Designs of a front that were measured on the test split.

    Args:
        rows: the results, in the order of the front.
        depends: for each objective, whether it depends on the test split.
        is_paired: whether standard errors of differences are of paired measurements.
    """

    rows: tuple[JudgedRow, ...]
    depends: tuple[bool, ...]
    is_paired: bool = False

    @property
    def by_trial(self) -> Mapping[int, JudgedRow]:
        """Results on the test split by the number of the trial."""
        return {row.trial: row for row in self.rows}

    @property
    def is_compared(self) -> bool:
        """Whether the standard errors are known, so that designs could be compared."""
        known = [row for row in self.rows if not row.failure]
        return 1 < len(known) <= _MOST_COMPARED and all(None not in row.stderr for row in known)


def judge_front(
    problem: Problem, trials: Sequence[Trial], judged: Mapping[int, JudgedTrial]
) -> JudgedFront | None:
    """Return the results of a front on the test split; ``None`` if none was measured.

    Args:
        problem: the objectives and limits.
        trials: the trials of the front.
        judged: results on the test split, by number of the trial.
    """
    measured = [(trial, judged[trial.number]) for trial in trials if trial.number in judged]
    if not measured:
        return None
    known = [(trial, one) for trial, one in measured if not one.failure]
    changed = frozenset().union(*(_changed_metrics(trial, one) for trial, one in known))
    names = [objective.expression.names & changed for objective in problem.objectives]
    paired = bool(known) and all(one.resamples for _, one in known)
    found = _rows(problem, known, names)
    return JudgedFront(
        rows=tuple(
            found.get(trial.number) or JudgedRow(trial=trial.number, failure=one.failure)
            for trial, one in measured
        ),
        depends=tuple(map(bool, names)),
        is_paired=paired,
    )


def _changed_metrics(trial: Trial, judged: JudgedTrial) -> frozenset[str]:
    """Return the metrics that differ from those of the search, or have a standard error."""
    return frozenset(
        name
        for name in judged.remeasured
        if name in judged.spread or judged.metrics.get(name) != trial.metrics.get(name)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Errors:
    """Errors of the objectives of n designs.

    ``draws`` are the objectives on resamples, (b, n, m); ``paired`` marks the designs that have
    resamples, (n,). ``variance`` is the variance of further, independent errors, (n, m).
    """

    draws: Floats
    paired: Mask
    variance: Floats

    def stderr(self) -> Floats:
        """Return the standard error of each objective, (n, m)."""
        return np.sqrt(self.draws.var(axis=0, ddof=1) + self.variance)

    def stderr_of_difference(self, row: int) -> Floats:
        """Return the standard error of each design's difference from one design, (n, m)."""
        apart = (self.draws - self.draws[:, [row]]).var(axis=0, ddof=1)
        own = self.draws.var(axis=0, ddof=1)
        both = self.paired & self.paired[row]
        joint = np.where(both[:, None], apart, own + own[row])
        return np.sqrt(joint + self.variance + self.variance[row])


def _rows(
    problem: Problem,
    known: Sequence[tuple[Trial, JudgedTrial]],
    names: Sequence[frozenset[str]],
) -> dict[int, JudgedRow]:
    """Return the result of each measured design, by number of the trial.

    Args:
        problem: the objectives and limits.
        known: the trials, each with its metrics on the test split.
        names: for each objective, its metrics that depend on the test split.
    """
    if not known:
        return {}
    trials = [replace(t, metrics=one.metrics, spread=one.spread) for t, one in known]
    signs = np.array([objective.sign for objective in problem.objectives])
    values = problem.trial_losses(trials) * signs
    errors = _estimate_errors(problem, trials, [one for _, one in known])
    stderr = errors.stderr()
    sure = np.array([[own <= one.spread.keys() for own in names] for _, one in known], dtype=bool)
    depends = np.array([bool(own) for own in names])
    feasible = problem.feasible(trials)
    compared = find_alike(values[:, depends], errors.stderr_of_difference, depends)
    alike = compared if sure.all() else None
    numbers = [trial.number for trial in trials]
    return {
        number: JudgedRow(
            trial=number,
            values=tuple(values[row].tolist()),
            stderr=tuple(
                float(stderr[row, m]) if sure[row, m] else None for m in range(len(names))
            ),
            feasible=bool(feasible[row]),
            alike=()
            if alike is None
            else tuple(numbers[other] for other in np.flatnonzero(alike[row]) if other != row),
        )
        for row, number in enumerate(numbers)
    }


def find_alike(
    values: Floats, stderr_of_difference: Callable[[int], Floats], depends: Mask
) -> Mask | None:
    """Return which pairs of n designs cannot be distinguished, (n, n); ``None`` for many designs.

    Args:
        values: the k objectives that have errors, (n, k).
        stderr_of_difference: returns the standard error of each design's difference from the
            design of a given row, in all m objectives, (n, m).
        depends: which of the objectives have errors, (m,).
    """
    if len(values) > _MOST_COMPARED or not depends.any():
        return None
    found = np.zeros((len(values), len(values)), dtype=bool)
    for row in range(len(values)):
        width = WIDTH * stderr_of_difference(row)[:, depends]
        found[row] = (np.abs(values - values[row]) <= width + 1e-12 * np.abs(values)).all(axis=1)
    return found


def _estimate_errors(
    problem: Problem, trials: Sequence[Trial], judged: Sequence[JudgedTrial]
) -> _Errors:
    """Return the errors of the objectives: from resamples, else from the metrics' own errors."""
    size = len(trials)
    columns = problem.columns(trials)
    plain = problem.losses(columns, size)
    count = max((len(row) for one in judged for row in one.resamples.values()), default=2)
    names = sorted({name for one in judged for name in one.resamples} & columns.keys())
    drawn = {name: _draws(columns[name].values, judged, name, count) for name in names}
    draws = np.stack(
        [
            problem.losses({**columns, **{n: Column(rows[b]) for n, rows in drawn.items()}}, size)
            for b in range(count)
        ]
    )
    variance = np.zeros(plain.shape)
    for name in sorted(problem.asked & columns.keys()):
        width = np.array(
            [0.0 if name in one.resamples else one.spread.get(name, 0.0) for one in judged]
        )
        if width.any():
            moved = {**columns, name: Column(columns[name].values + width)}
            variance += (problem.losses(moved, size) - plain) ** 2
    paired = np.array([bool(one.resamples) for one in judged])
    return _Errors(draws=draws, paired=paired, variance=variance)


def _draws(values: Floats, judged: Sequence[JudgedTrial], name: str, count: int) -> Floats:
    """Return a metric on each resample, (b, n); its value where a design has no resamples."""
    rows = [
        one.resamples[name] if len(one.resamples.get(name, ())) == count else [value] * count
        for value, one in zip(values.tolist(), judged, strict=True)
    ]
    return np.array(rows, dtype=np.float64).T
