"""Early stopping of trials, decided only from earlier reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dse.core.design import Design
from dse.core.pareto import ParetoSet, nondominated
from dse.core.problem import Problem
from dse.core.trial import Report, State, Trial
from dse.core.values import Floats, Ints, Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Halving:
    """Of the trials that reached a step in ``at``, one in ``eta`` goes on.

    A trial is at a rung with the first report at its step or later. It is stopped there if another
    one dominates it, and it is not among the best share in the order of non-dominated fronts and,
    in a front, of crowding distance. What nothing dominates is never stopped. With one objective
    this is the rule of ASHA.

    Source:
        Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2;
        ranks of several objectives as in Deb et al., NSGA-II, IEEE TEC 6(2), 2002.
    """

    eta: int = 3
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certain:
    """Stops what cannot become better than a trial that is done.

    A metric in ``worsens`` only gets worse with each step; one in ``best`` never gets better than
    its bound. All other measured metrics may yet become anything.
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
    """Return the reason to stop the trial of the last report; empty if it must continue.

    Args:
        rule: the study's.
        problem: what the study asks.
        designs: by trial number.
        reports: all that was recorded up to now, in the order of the record.
        finished: the trials that were finished by now.
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


def rungs(rule: Halving, told: Sequence[Report]) -> list[int]:
    """The rungs at which a trial is with the last of its reports, and was not before."""
    at = [(rung, _find_first_reports(told, rung)) for rung in rule.at]
    return [rung for rung, reached in at if reached.get(told[-1].number) is told[-1]]


def convert_for_optimizer(trial: Trial) -> Trial:
    """Return the trial as optimizers see it: a stopped one as failed, without values.

    What it last reported is no measurement, and its design is not asked again.
    """
    if trial.state is not State.STOPPED:
        return trial
    return replace(trial, state=State.FAILED, metrics={}, spread={})


def runs(reports: Sequence[Report]) -> list[int]:
    """Return which run of its trial each report is of, numbered in the order of their beginning.

    A run is one driver's, of one attempt; where its steps start again, another one has begun. Two
    runs of a trial may report by turns, where one driver was taken for lost.
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
    """Return the first report at the rung of each trial's last run, in the order of arrival."""
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
    broken: Floats,  # (n,), zero where all limits are kept
) -> tuple[Ints, Mask]:
    """Return the rows from the best on, (n,), and which of them are not dominated, (n,).

    Rows within all limits come first, front by front, in a front the least crowded first; then
    the others, by how much they break. Of equals the first comes first.
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
    """The rows that no other dominates; of equal rows all."""
    distinct, place = np.unique(losses, axis=0, return_inverse=True)
    return np.flatnonzero(nondominated(distinct)[place.reshape(-1)])


def _crowding(losses: Floats) -> Floats:
    """The crowding distance of each row of a front, (n,); infinite at its ends.

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
    """By how much each trial breaks the limits as far as they are known, (n,)."""
    slacks = problem.slacks(problem.columns(trials), len(trials))
    return np.nansum(np.maximum(-slacks, 0.0), axis=1)


def _beaten(
    rule: Certain, problem: Problem, design: Design, report: Report, finished: Sequence[Trial]
) -> str:
    told = {**report.metrics, **{n: b for n, b in rule.best.items() if n not in rule.worsens}}
    sure = rule.worsens | rule.best.keys() | (report.metrics.keys() - problem.measured)
    metrics = {name: value for name, value in told.items() if name in sure}
    row = problem.trial_losses([Trial(number=0, design=design, metrics=metrics)])[0]
    for place, objective in enumerate(problem.objectives):
        mixed = objective.expression.names & (problem.measured & metrics.keys())
        if mixed and objective.text not in problem.metrics:
            row[place] = np.nan  # nobody said in which direction the whole goes
    front = ParetoSet.of(problem, finished)
    if not np.isfinite(row).all() or not len(front.losses):
        return ""
    beats = (front.losses <= row).all(axis=1) & (front.losses < row).any(axis=1)
    if not beats.any():
        return ""
    return f"at step {report.step} trial {front.trials[int(np.argmax(beats))].number} dominates it"


def _as_trial(report: Report, design: Design) -> Trial:
    return Trial(number=report.number, design=design, state=State.DONE, metrics=report.metrics)
