"""Early stopping rules; decisions depend only on recorded reports, so they are reproducible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.design import Design
from dse.core.pareto import ParetoSet, nondominated
from dse.core.problem import Problem
from dse.core.trial import Report, State, Trial
from dse.core.values import Floats, Ints, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Halving:
    """Asynchronous successive halving: about one in ``eta`` trials continues past each rung.

    A rung is a step at which trials are compared; ``at`` lists them. A trial reaches a rung with
    its first report at that step or later. It is stopped there if another trial dominates it and it
    is not in the best 1/``eta`` of the trials at the rung, ranked by non-dominated front and,
    within a front, by crowding distance. A non-dominated trial is never stopped. With one objective
    this is the rule of ASHA.

    Source:
        Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2;
        ranks of several objectives as in Deb et al., NSGA-II, IEEE TEC 6(2), 2002.
    """

    eta: int = 3
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certain:
    """Rule that stops a trial that is certain to be dominated by a finished one.

    A metric in ``worsens`` only gets worse with each step; a metric in ``best`` never gets better
    than its bound. All other measured metrics are unbounded until the trial is finished.
    """

    worsens: frozenset[str] = frozenset()
    best: Mapping[str, float] = field(default_factory=dict)


Rule = Halving | Certain


def decide(
    rule: Rule,
    problem: Problem,
    designs: Mapping[int, Design] | Sequence[Design],
    reports: Sequence[Report],
    finished: Sequence[Trial] = (),
) -> str:
    """Return the reason to stop the trial of the last report; empty if it may continue.

    Args:
        rule: the study's early stopping rule.
        problem: the study's problem.
        designs: designs by trial number.
        reports: all reports recorded so far, in order; the last one triggers the decision.
        finished: the trials finished so far.
    """
    match rule:
        case Halving():
            return _apply_halving(rule, problem, designs, reports)
        case Certain():
            return _beaten(rule, problem, designs[reports[-1].number], reports[-1], finished)


def _apply_halving(
    rule: Halving,
    problem: Problem,
    designs: Mapping[int, Design] | Sequence[Design],
    reports: Sequence[Report],
) -> str:
    last = reports[-1]
    for rung in rungs(rule, [one for one in reports if one.number == last.number]):
        reached = _find_first_reports(reports, rung)
        trials = [_as_trial(one, designs[one.number]) for one in reached.values()]
        losses = problem.trial_losses(trials)
        judged = np.asarray(np.isfinite(losses).all(axis=1), dtype=bool)
        place = list(reached).index(last.number)
        if not judged[place]:
            continue
        broken = _broken(problem, trials)[judged]
        order, first = rank_rows(losses[judged], broken)
        own = int(judged[:place].sum())
        keep = max(1, len(order) // rule.eta)
        rank = int(np.flatnonzero(order == own)[0])
        if rank >= keep and not first[own]:
            return f"at step {last.step} {rank} of {len(order)} are better, and {keep} go on"
    return ""


def rungs(rule: Halving, reports: Sequence[Report]) -> list[int]:
    """Return the steps of comparison that a trial first reaches with its last report."""
    at = [(rung, _find_first_reports(reports, rung)) for rung in rule.at]
    return [rung for rung, reached in at if reached.get(reports[-1].number) is reports[-1]]


def runs(reports: Sequence[Report]) -> list[int]:
    """Return for each report the index of its run among the runs of its trial, from 0.

    A run is one evaluation by one process in one attempt; if the step does not increase, a new run
    has begun. Reports of two runs of a trial may alternate if one process was considered lost.
    """
    found: list[int] = []
    begun = Counter[int]()
    last: dict[tuple[int, int, int | None], tuple[int, int]] = {}
    for one in reports:
        key = one.number, one.attempt, one.worker
        run, step = last.get(key, (-1, one.step))
        if one.step <= step:
            run = begun[one.number]
            begun[one.number] += 1
        last[key] = run, one.step
        found.append(run)
    return found


def _find_first_reports(reports: Sequence[Report], rung: int) -> dict[int, Report]:
    """Return, by trial number, the first report at or after a rung in the trial's latest run.

    A rung is a step at which trials are compared.
    """
    found: dict[int, tuple[int, Report]] = {}
    newest: dict[int, int] = {}
    for run, one in zip(runs(reports), reports, strict=True):
        if run > newest.get(one.number, -1):
            newest[one.number] = run
            found.pop(one.number, None)
        if one.step >= rung and run == newest[one.number]:
            found.setdefault(one.number, (run, one))
    return {number: one for number, (_, one) in found.items()}


def rank_rows(
    losses: Floats,  # (n, m), minimised
    broken: Floats,  # (n,), total limit violation; zero if all limits are satisfied
) -> tuple[Ints, Mask]:
    """Rank trials from best to worst; return indices, (n,), and a mask of the best ones, (n,).

    Trials that satisfy all limits come first, by non-dominated front and, within a front, by
    decreasing crowding distance; then the other trials, by increasing violation. Ties keep their
    order. The mask is true for the trials of the first front or, if no trial satisfies all limits,
    for the trials of least violation.
    """
    front = np.full(len(losses), len(losses), dtype=np.int64)
    left, number = np.flatnonzero(broken <= 0), 0
    spread = np.zeros(len(losses))
    while len(left):
        best = left[_unbeaten(losses[left])]
        front[best] = number
        spread[best] = _crowding(losses[best])
        left, number = np.setdiff1d(left, best), number + 1
    order = np.lexsort((np.arange(len(losses)), -spread, broken, front))
    least = broken.min(initial=np.inf)
    return order, (front == 0) if least <= 0 else (broken == least)


def _unbeaten(losses: Floats) -> Ints:
    """Return the indices of the non-dominated points; of equal points, all are returned."""
    distinct, place = np.unique(losses, axis=0, return_inverse=True)
    return np.flatnonzero(nondominated(distinct)[place.reshape(-1)])


def _crowding(losses: Floats) -> Floats:
    """Return the crowding distance of each point of a front, (n,); infinite at its ends.

    Source:
        Deb et al., NSGA-II, 2002, section III-B.
    """
    distance = np.zeros(len(losses))
    for column in losses.T:
        order = np.argsort(column, kind="stable")
        span = column[order[-1]] - column[order[0]]
        distance[order[[0, -1]]] = np.inf
        if span > 0 and len(order) > 2:
            distance[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / span
    return distance


def _broken(problem: Problem, trials: Sequence[Trial]) -> Floats:
    """Return the sum of limit violations of each trial, (n,); limits of unknown value add 0."""
    slacks = problem.slacks(problem.columns(trials), len(trials))
    return np.nansum(np.maximum(-slacks, 0.0), axis=1)


def _beaten(
    rule: Certain, problem: Problem, design: Design, report: Report, finished: Sequence[Trial]
) -> str:
    values = {**report.metrics, **{n: b for n, b in rule.best.items() if n not in rule.worsens}}
    sure = rule.worsens | rule.best.keys() | (report.metrics.keys() - problem.measured)
    metrics = {name: value for name, value in values.items() if name in sure}
    row = problem.trial_losses([Trial(number=0, design=design, metrics=metrics)])[0]
    for place, objective in enumerate(problem.objectives):
        mixed = objective.expression.names & (problem.measured & metrics.keys())
        if mixed and objective.text not in problem.metrics:
            row[place] = np.nan  # the expression may not be monotonic in its metrics
    front = ParetoSet.of(problem, finished)
    if not np.isfinite(row).all() or not len(front.losses):
        return ""
    beats = (front.losses <= row).all(axis=1) & (front.losses < row).any(axis=1)
    if not beats.any():
        return ""
    return f"at step {report.step} trial {front.trials[int(np.argmax(beats))].number} dominates it"


def _as_trial(report: Report, design: Design) -> Trial:
    return Trial(number=report.number, design=design, state=State.DONE, metrics=report.metrics)
