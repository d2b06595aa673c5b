"""Intervals of modelled objectives, and designs that the models' errors make indistinguishable."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.analysis.judged_front import WIDTH, find_alike
from dse.core.batch import Column
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats
from dse.protocols import ErrorOrigin, ModelError

STDERR_OF_MEAN = math.sqrt(math.pi / 2)
"""Standard error over mean absolute error, of a normal distribution."""

_ORIGINS: tuple[ErrorOrigin, ...] = ("held out", "extrapolated", "data sheet only")


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """Errors of the modelled objectives of a design.

    Args:
        trial: number of the trial.
        width: half of the interval of each objective, as a share of its value: two standard errors;
            0 for an objective without an error of a model, ``None`` if its error is unknown.
        origin: for each objective, the weakest origin of its metrics' errors; empty without errors.
        groups: the groups of measurements that show the errors.
        alike: numbers of the other trials that cannot be distinguished from this design.
    """

    trial: int
    width: tuple[float | None, ...]
    origin: tuple[ErrorOrigin | str, ...]
    groups: tuple[str, ...]
    alike: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorIntervals:
    """Errors of the modelled objectives of a front.

    Args:
        rows: the designs, in the order of the front.
        depends: for each objective, whether the error of a model affects it.
        is_known: whether the errors of all objectives are known.
        is_compared: whether designs were compared: errors are known, and designs are not too many.
    """

    rows: tuple[IntervalRow, ...]
    depends: tuple[bool, ...]
    is_known: bool
    is_compared: bool

    @property
    def by_trial(self) -> Mapping[int, IntervalRow]:
        """Rows of the table of error intervals, by the number of their trial."""
        return {row.trial: row for row in self.rows}


def find_intervals(
    problem: Problem, trials: Sequence[Trial], errors: Mapping[str, Sequence[ModelError]]
) -> ErrorIntervals | None:
    """Return the errors of the objectives of n designs; ``None`` if no model states errors.

    The error of a metric is taken as normal, with the mean error of the nearest group. Two designs
    are alike if in each objective that has an error they differ by at most two standard errors of
    the difference. For designs that share a group's factor (the same model, device and format),
    only the errors within the group count; the errors of other designs are assumed to be
    independent.

    Args:
        problem: the objectives and limits.
        trials: the designs, all with finite objectives.
        errors: model errors of the designs' metrics by name, each (n,).
    """
    names = sorted(problem.asked & errors.keys())
    if not trials or not any(one.expression.names & set(names) for one in problem.objectives):
        return None
    found = _Deviations.of(problem, trials, {name: errors[name] for name in names})
    stderr, losses = found.stderr, problem.trial_losses(trials)
    reads = [sorted(one.expression.names & set(names)) for one in problem.objectives]
    depends = np.array([bool(own) for own in reads])
    known = bool(np.isfinite(stderr).all())
    alike = find_alike(losses[:, depends], found.stderr_of_difference, depends) if known else None
    with np.errstate(divide="ignore", invalid="ignore"):
        share = WIDTH * stderr / np.abs(losses)
    rows = []
    for row, trial in enumerate(trials):
        each = [[errors[name][row] for name in own] for own in reads]
        others = () if alike is None else np.flatnonzero(alike[row]).tolist()
        rows.append(
            IntervalRow(
                trial=trial.number,
                width=tuple(
                    0.0 if not own else float(one) if np.isfinite(one) else None
                    for own, one in zip(each, share[row], strict=True)
                ),
                origin=tuple(_weakest(own) for own in each),
                groups=tuple(dict.fromkeys(one.group for own in each for one in own if one.group)),
                alike=tuple(trials[other].number for other in others if other != row),
            )
        )
    return ErrorIntervals(
        rows=tuple(rows),
        depends=tuple(depends.tolist()),
        is_known=known,
        is_compared=alike is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deviations:
    """Change of each objective by one standard error of each of k metrics; NaN if unknown.

    ``whole`` holds the changes by the complete error, ``within`` those by the error within a group,
    both (k, n, m); ``shared`` has the same number for designs that share the group's factor, (k,
    n).
    """

    whole: Floats
    within: Floats
    shared: Floats

    @staticmethod
    def of(
        problem: Problem, trials: Sequence[Trial], errors: Mapping[str, Sequence[ModelError]]
    ) -> _Deviations:
        columns, size = problem.columns(trials), len(trials)
        plain = problem.losses(columns, size)

        def move(name: str, shares: Sequence[float]) -> Floats:
            values = columns[name].values * (1.0 + STDERR_OF_MEAN * np.array(shares))
            return problem.losses({**columns, name: Column(values)}, size) - plain

        whole, within, shared = [], [], []
        for name, own in errors.items():
            inner = [one.mean if math.isnan(one.within) else one.within for one in own]
            whole.append(move(name, [one.mean for one in own]))
            within.append(move(name, inner))
            keys = {one.shares or f"{row}": 0 for row, one in enumerate(own)}
            places = {key: place for place, key in enumerate(keys)}
            shared.append([places[one.shares or f"{row}"] for row, one in enumerate(own)])
        return _Deviations(
            whole=np.stack(whole), within=np.stack(within), shared=np.array(shared, dtype=float)
        )

    @property
    def stderr(self) -> Floats:
        """Standard error of each objective, (n, m)."""
        return np.sqrt((self.whole**2).sum(axis=0))

    def stderr_of_difference(self, row: int) -> Floats:
        """Return the standard error of each design's difference from one design, (n, m)."""
        same = (self.shared == self.shared[:, [row]])[:, :, None]
        both = np.where(
            same,
            self.within**2 + self.within[:, [row]] ** 2,
            self.whole**2 + self.whole[:, [row]] ** 2,
        )
        return np.sqrt(both.sum(axis=0))


def _weakest(errors: Sequence[ModelError]) -> ErrorOrigin | str:
    return max((one.origin for one in errors), key=_ORIGINS.index, default="")
