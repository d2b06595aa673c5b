"""Several studies of one question, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dse.analysis.indicators import (
    Counted,
    Progress,
    Spent,
    counted_in,
    epsilon,
    igd_plus,
    spent_to_reach,
    volume_at,
)
from dse.core.objective import Objective
from dse.core.pareto import ParetoSet, nondominated
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats, Ints
from dse.errors import StudyError

SHARES = (0.9, 0.95, 0.99)
"""The shares of the best final hypervolume for which it is told what reaching them took."""

GRID_STEPS = 50


class Run(NamedTuple):
    """One study in a comparison; its trials stand in the order in which they were finished."""

    name: str
    problem: Problem
    trials: Sequence[Trial]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one study spent, and what it had for it.

    ``share`` is the part of the joint front that the study found; a design that several found
    counts for each. ``distance`` and ``step`` are from the joint front, in shares of its range
    (see :func:`igd_plus` and :func:`epsilon`), ``None`` where the study has no front.
    """

    name: str
    trials: int
    count: int
    seconds: float
    hypervolume: float
    front: int
    share: float
    distance: float | None
    step: float | None
    over_counts: Floats  # (g,), the hypervolume at the grid of counts
    over_seconds: Floats  # (h,), the hypervolume at the grid of seconds
    counts_to: tuple[float | None, ...]  # for each of SHARES, in their order
    seconds_to: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Studies of one question under one reference point.

    ``counted`` says what is counted: where no study measured anything, it is trials.
    """

    objectives: tuple[Objective, ...]
    reference_point: tuple[float, ...]
    reference_from: str
    counted: Counted
    counts: Ints  # (g,)
    seconds: Floats  # (h,)
    joint_front: int
    results: tuple[Result, ...]


def compare(runs: Sequence[Run], *, joint_nadir: bool = False) -> Comparison:
    """The studies side by side.

    Args:
        runs: at least one.
        joint_nadir: take as the reference point, instead of the one that the studies state, the
            worst that any study's front has in each objective, a tenth of the range beyond it.

    Raises:
        StudyError: they do not ask the same; or they state no reference point, and the joint
            nadir was not asked for or does not exist.
    """
    if not runs:
        raise StudyError("there is no study to compare", hint="name at least one")
    for other in runs[1:]:
        _check_alike(runs[0], other)
        if not joint_nadir:
            _check_equal("reference points", runs[0], other, lambda p: p.fixed_reference)
    losses = [ParetoSet.of(run.problem, run.trials).losses for run in runs]
    point = _nadir(runs[0].problem, losses) if joint_nadir else _stated(runs)
    counted = counted_in(trial for run in runs for trial in run.trials)
    progress = [Progress.of(run.problem, run.trials, point, counted) for run in runs]
    shared = _Shared(
        joint=_front(losses),
        best=max(_last(each.hypervolume) for each in progress),
        counts=np.unique(_grid([each.counts for each in progress]).round().astype(np.int64)),
        seconds=_grid([each.seconds for each in progress]),
    )
    return Comparison(
        objectives=runs[0].problem.objectives,
        reference_point=point,
        reference_from="the joint nadir" if joint_nadir else "the studies",
        counted=counted,
        counts=shared.counts,
        seconds=shared.seconds,
        joint_front=len(shared.joint),
        results=tuple(map(shared.result, runs, losses, progress)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What every study is held against."""

    joint: Floats  # (k, m), minimised
    best: float
    counts: Ints  # (g,)
    seconds: Floats  # (h,)

    def result(self, run: Run, losses: Floats, progress: Progress) -> Result:
        volumes = progress.hypervolume
        return Result(
            name=run.name,
            trials=len(volumes),
            count=int(_last(progress.counts)),
            seconds=_last(progress.seconds),
            hypervolume=_last(volumes),
            front=len(losses),
            share=_found(self.joint, losses),
            distance=igd_plus(losses, self.joint),
            step=epsilon(losses, self.joint),
            over_counts=volume_at(progress.counts, volumes, self.counts),
            over_seconds=volume_at(progress.seconds, volumes, self.seconds),
            counts_to=self._to_reach(progress.counts, volumes),
            seconds_to=self._to_reach(progress.seconds, volumes),
        )

    def _to_reach(self, spent: Spent, volumes: Floats) -> tuple[float | None, ...]:
        if self.best == 0:
            return (None,) * len(SHARES)
        return tuple(spent_to_reach(spent, volumes, share * self.best) for share in SHARES)


def _check_alike(first: Run, other: Run) -> None:
    _check_equal("objectives", first, other, _objectives)
    _check_equal("limits", first, other, _limits)


def _check_equal(what: str, first: Run, other: Run, fact: Callable[[Problem], object]) -> None:
    mine, theirs = fact(first.problem), fact(other.problem)
    if mine != theirs:
        raise StudyError(
            f"{first.name!r} and {other.name!r} cannot be compared: their {what} differ",
            hint=f"{first.name}: {mine or 'none'}; {other.name}: {theirs or 'none'}",
        )


def _objectives(problem: Problem) -> str:
    return ", ".join(
        f"{o.goal} {''.join(o.text.split())}" + (f" in {o.unit}" if o.unit else "")
        for o in problem.objectives
    )


def _limits(problem: Problem) -> str:
    return ", ".join(sorted({"".join(limit.text.split()) for limit in problem.limits}))


def _stated(runs: Sequence[Run]) -> tuple[float, ...]:
    point = runs[0].problem.fixed_reference
    if point is None:
        raise StudyError(
            "the studies state no reference point that they have in common",
            hint="put 'reference:' in the studies, or take the worst of all (--joint-reference)",
        )
    return point


def _nadir(problem: Problem, losses: Sequence[Floats]) -> tuple[float, ...]:
    every = np.vstack(losses)  # (n, m), minimised
    if not len(every):
        raise StudyError("no study has a design within all limits, so there is no joint nadir")
    worst, span = every.max(axis=0), np.ptp(every, axis=0)
    margin = np.where(span > 0, 0.1 * span, 0.1 * np.maximum(np.abs(worst), 1e-12))
    signs = [1.0 if o.goal == "minimize" else -1.0 for o in problem.objectives]
    return tuple(float(s * r) for s, r in zip(signs, worst + margin, strict=True))


def _front(losses: Sequence[Floats]) -> Floats:
    every = np.vstack(losses)
    return np.asarray(every[nondominated(every)])


def _found(joint: Floats, losses: Floats) -> float:
    """The share of the joint front's rows that are among the study's."""
    if not len(joint):
        return 0.0
    own = {tuple(row) for row in losses.tolist()}
    return sum(tuple(row) in own for row in joint.tolist()) / len(joint)


def _grid(spent: Sequence[Spent]) -> Floats:
    return np.linspace(0.0, max(_last(each) for each in spent), GRID_STEPS + 1)


def _last(values: Spent) -> float:
    return float(values[-1]) if len(values) else 0.0
