"""Comparison of the best design of an objective with its runner-up, metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from dse.analysis.model_speed import quick
from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.ties import is_tie
from dse.core.trial import Trial
from dse.core.values import Floats, Ints, Value

MOST_LISTED = 2_000_000
"""Largest space that is searched completely; in larger ones only neighbours are evaluated."""

MOST_S = 10.0
"""Largest time to model a complete space, in s; slower models evaluate only neighbours."""

_FEW = 3
"""Candidates per objective: one may be the winner itself, one may have the same design."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Design that is compared with another, with its metrics and losses.

    ``number`` is the number of its trial, if it has one.
    """

    design: Design
    metrics: Mapping[str, float]
    losses: Floats  # (m,)
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricContrast:
    """Values of one metric for the best design and the runner-up, in the metric's unit."""

    metric: str
    winner: float
    rival: float

    @property
    def more(self) -> float:
        """Runner-up's value minus the best design's, in the metric's unit; zero if they tie."""
        return 0.0 if is_tie(self.rival, self.winner) else self.rival - self.winner


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Total metric, and the metrics that add up to it, for the best design and the runner-up."""

    total: MetricContrast
    parts: tuple[MetricContrast, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerUpComparison:
    """Comparison of the best design for one objective (winner) with the runner-up.

    ``changed`` holds the parameters in which the two designs differ, with both values; ``None`` if
    a parameter is absent. ``among`` describes the designs among which the runner-up was searched.
    """

    place: int
    objective: Objective
    winner: Contender
    rival: Contender
    changed: Mapping[str, tuple[Value | None, Value | None]]
    breakdowns: tuple[Breakdown, ...]
    among: str

    @property
    def beaten(self) -> bool:
        """Whether the runner-up is better than the best design found.

        The runner-up is then a modelled design that the study has not tried, or not finished yet.
        """
        mine, theirs = (float(one.losses[self.place]) for one in (self.winner, self.rival))
        return theirs < mine and not is_tie(theirs, mine)


def duels(front: ParetoSet, trials: Sequence[Trial]) -> list[RunnerUpComparison]:
    """Compare, for each objective, the best design of the front with the runner-up.

    If models without side effects yield all needed metrics, runner-ups are searched among all legal
    designs of a small space or, if the space is large or a model slow, among the neighbours of the
    winners. Otherwise they are searched among the finished trials.
    """
    if not front.trials:
        return []
    best = [int(np.argmin(column)) for column in front.losses.T]
    winners = [_of_front(front, place) for place in best]
    among, rivals = _rivals(front.problem, trials, winners)
    found = []
    for place, winner in enumerate(winners):
        others = [one for one in rivals if one.design != winner.design]
        if others:
            rival = min(others, key=lambda one: (one.losses[place], *one.losses))
            found.append(_duel(front.problem, place, (winner, rival), among))
    return found


def _of_front(front: ParetoSet, place: int) -> Contender:
    return _build_contender(front.trials[place], front.losses[place])


def _build_contender(trial: Trial, losses: Floats) -> Contender:
    return Contender(design=trial.design, metrics=trial.metrics, losses=losses, number=trial.number)


def _rivals(
    problem: Problem, trials: Sequence[Trial], winners: Sequence[Contender]
) -> tuple[str, list[Contender]]:
    """Return a description of the searched designs, and the best of them for each objective.

    If a trial and a modelled design are the same, the trial is listed first.
    """
    losses, answers = problem.judged(trials)
    tried = [
        _build_contender(trials[row], losses[row]) for row in _few(losses, np.flatnonzero(answers))
    ]
    if problem.unprobed:
        return f"the trials of this study{_unprobed_words(problem)}", tried
    count = problem.space.count()
    if count is None or count > MOST_LISTED or not quick(problem, count, MOST_S):
        near = [_model_contenders(problem, problem.space.neighbours(one.design)) for one in winners]
        return "designs one step away and this study's trials", [*tried, *chain(*near)]
    listed = [_model_contenders(problem, batch) for batch in problem.space.enumerate()]
    return f"all {count:,} legal designs", [*tried, *chain(*listed)]


def _unprobed_words(problem: Problem) -> str:
    """Return a note that only trials are searched, because a model runs only during the study.

    It is empty if every model can be called.
    """
    left = problem.unprobed - problem.measured
    if not left:
        return ""
    return f" (no other was evaluated: {min(left)} is only computed where the study runs)"


def _model_contenders(problem: Problem, batch: Batch) -> list[Contender]:
    """Evaluate designs with the models; return the best feasible ones for each objective."""
    got = problem.known(batch)
    if not problem.asked <= got.columns.keys():
        return []
    columns = {**batch.columns, **{name: Column(each) for name, each in got.columns.items()}}
    losses = problem.losses(columns, len(batch))
    kept = (problem.slacks(columns, len(batch)) >= 0).all(axis=1) & np.isfinite(losses).all(axis=1)
    rows = np.setdiff1d(np.flatnonzero(kept), list(got.failures))
    return [
        Contender(
            design=batch.design(row),
            metrics={name: float(values[row]) for name, values in got.columns.items()},
            losses=losses[row],
        )
        for row in _few(losses, rows)
    ]


def _few(losses: Floats, kept: Ints) -> list[int]:
    """Return the indices of the :data:`_FEW` best of the ``kept`` designs for each objective."""
    best = [kept[np.argsort(column, kind="stable")[:_FEW]] for column in losses[kept].T]
    return [int(row) for row in np.unique(np.concatenate(best))]


def _duel(
    problem: Problem, place: int, two: tuple[Contender, Contender], among: str
) -> RunnerUpComparison:
    winner, rival = two
    names = [one.name for one in problem.space.parameters]
    pairs = {name: (winner.design.get(name), rival.design.get(name)) for name in names}
    objective = problem.objectives[place]
    return RunnerUpComparison(
        place=place,
        objective=objective,
        winner=winner,
        rival=rival,
        changed={name: pair for name, pair in pairs.items() if pair[0] != pair[1]},
        breakdowns=tuple(_breakdowns(problem, objective, two)),
        among=among,
    )


def _breakdowns(
    problem: Problem, objective: Objective, two: tuple[Contender, Contender]
) -> Iterator[Breakdown]:
    """Yield each total metric with the metrics that it sums, if these differ for two designs.

    Only totals of the evaluators that the objective reads are included.
    """
    known = two[0].metrics.keys() & two[1].metrics.keys()
    tellers = {_teller(name) for name in objective.expression.names if name in problem.sources}
    for total, names in totals(problem.metrics).items():
        is_known = {total, *names} <= known and _teller(total) in tellers
        parts = [_part(name, two) for name in names] if is_known else []
        if any(part.more for part in parts):
            parts.sort(key=lambda part: -abs(part.more))
            yield Breakdown(total=_part(total, two), parts=tuple(parts))


def _part(metric: str, two: tuple[Contender, Contender]) -> MetricContrast:
    return MetricContrast(
        metric=metric, winner=two[0].metrics[metric], rival=two[1].metrics[metric]
    )


def _teller(metric: str) -> str:
    return metric.partition(".")[0]


def totals(metrics: Mapping[str, Metric]) -> dict[str, list[str]]:
    """Return, for each total metric of a study, the names of the metrics that add up to it.

    A total has the same evaluator and scenario as the metrics that it sums.
    """
    found: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        if metric.part_of:
            before, _, after = name.rpartition(metric.name)
            found.setdefault(f"{before}{metric.part_of}{after}", []).append(name)
    return {total: parts for total, parts in found.items() if total in metrics}
