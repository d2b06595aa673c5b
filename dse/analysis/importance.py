"""Importance of each parameter for each objective, from a random forest.

The forest is fitted to designs labelled with the objective. It yields total-effect (Sobol) indices
and partial dependence curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dse.analysis.model_speed import quick
from dse.core.batch import Batch, Column
from dse.core.metric import Metrics
from dse.core.objective import Objective
from dse.core.parameter import Choice
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import Trials
from dse.core.values import Floats, Mask, Value
from dse.errors import DesignError

LEAST_DESIGNS = 20
"""Smallest number of designs for which importance is estimated."""

LEAST_EXPLAINED = 0.3
"""Smallest out-of-bag R2 of the forest for which importance is reported."""

WIDE = 50.0
"""Ratio of the largest to the smallest value above which positive values are learnt as logs."""

_TREES = 60

_SHUFFLES = 4

_SLICED = 4

_PLACES = 9

_MOST_ROWS = 300

MODELLED_DRAWS = 2_000
"""Number of legal designs drawn if the objective is purely modelled, and so costs nothing."""

MOST_S = 5.0
"""Largest time to model these designs, in s; for slower models the trials are used instead."""

MOST_TRIALS = 5_000
"""Largest number of trials used: the last ones."""

_STREAM = 7_001
"""Random stream, so that these draws are independent of those of the optimizers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Partial dependence of an objective on one parameter: the mean prediction at each value.

    The band from ``lows`` to ``highs`` is one standard deviation over the trees to each side.
    """

    parameter: str
    values: tuple[Value | None, ...]  # k
    means: Floats  # (k,), in the objective's unit
    lows: Floats  # (k,)
    highs: Floats  # (k,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """Importance of the parameters for one objective, most important first.

    A share is the total-effect index: the share of the variance that remains if all parameters but
    this one are fixed. Shares may sum to more than one, because an interaction counts for each of
    its parameters.
    """

    place: int
    fresh: bool
    """Whether the forest was fitted to uniformly drawn designs; otherwise to the trials."""
    explained: float
    shares: tuple[tuple[str, float], ...]
    slices: tuple[Slice, ...]


def importances(problem: Problem, trials: Sequence[Trial]) -> list[Importance]:
    """Estimate the importance of parameters for each objective that a forest can predict.

    Source:
        Breiman: Random Forests, 2001; Jansen: Analysis of Variance Designs for Model Output, 1999
        (total effects from pairs of points); Friedman: Greedy Function Approximation, 2001,
        section 8.2 (slices, his partial dependence).
    """
    found = (
        _learnt(problem, draw_designs(problem, trials, objective), place)
        for place, objective in enumerate(problem.objectives)
    )
    return [one for one in found if one is not None]


def weightiest(found: Sequence[Importance]) -> list[str]:
    """Return the parameters' names by decreasing importance, the largest for any objective."""
    most: dict[str, float] = {}
    for one in found:
        for name, share in one.shares:
            most[name] = max(share, most.get(name, 0.0))
    return sorted(most, key=lambda name: -most[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Learnt:
    """Fitted random forest with its training inputs.

    ``wide`` means that it predicts the logarithm of the objective, which spans orders of magnitude.
    """

    forest: Any
    inputs: Floats  # (n, d)
    wide: bool

    def means(
        self,
        rows: Floats,  # (c, r, d)
    ) -> Floats:
        """Return each tree's mean prediction over the r inputs of each of c groups, (c, trees)."""
        flat = rows.reshape(-1, rows.shape[-1]).astype(
            np.float32
        )  # the dtype of scikit-learn's trees
        predictions = [tree.predict(flat, check_input=False) for tree in self.forest.estimators_]
        return np.asarray(np.stack(predictions, axis=-1).reshape(*rows.shape[:2], -1).mean(axis=1))


def _learnt(problem: Problem, known: Drawn, place: int) -> Importance | None:
    if len(known.values) < LEAST_DESIGNS or not np.ptp(known.values):
        return None
    from sklearn.ensemble import RandomForestRegressor

    inputs, values = _inputs(problem, known), known.values
    wide = bool(values.min() > 0 and values.max() / values.min() > WIDE)
    forest = RandomForestRegressor(
        _TREES, min_samples_leaf=2, max_features=0.6, oob_score=True, random_state=0, n_jobs=1
    )
    forest.fit(inputs, np.log(values) if wide else values)
    if not forest.oob_score_ >= LEAST_EXPLAINED:
        return None
    learnt = _Learnt(forest=forest, inputs=inputs, wide=wide)
    effects = _total_effects(learnt)
    order = sorted(effects, key=lambda at: -effects[at])
    return Importance(
        place=place,
        fresh=known.fresh,
        explained=float(forest.oob_score_),
        shares=tuple((problem.space.parameters[at].name, effects[at]) for at in order),
        slices=tuple(_slice(problem, known, learnt, at) for at in order[:_SLICED]),
    )


def _total_effects(learnt: _Learnt) -> dict[int, float]:
    """Estimate the total-effect index of each input column with Jansen's estimator.

    An index is half of the mean squared change of the prediction when one input is resampled,
    divided by the variance of the predictions.
    """
    rng = np.random.default_rng(0)
    rows = _few(learnt.inputs)
    guess = learnt.forest.predict(rows)
    variance = float(guess.var()) or 1.0
    found = {}
    for at in np.flatnonzero(np.ptp(learnt.inputs, axis=0) > 0).tolist():
        shuffled = np.concatenate([rows] * _SHUFFLES)
        shuffled[:, at] = rng.choice(learnt.inputs[:, at], len(shuffled))
        change = learnt.forest.predict(shuffled) - np.tile(guess, _SHUFFLES)
        found[at] = float(np.mean(change**2)) / (2.0 * variance)
    return found


def _slice(problem: Problem, known: Drawn, learnt: _Learnt, at: int) -> Slice:
    inputs, name = learnt.inputs, problem.space.parameters[at].name
    codes = np.unique(inputs[:, at])
    if len(codes) > _PLACES:
        codes = np.unique(np.quantile(codes, np.linspace(0, 1, _PLACES), method="nearest"))
    rows = np.stack([_few(inputs)] * len(codes))  # (c, r, d)
    rows[:, :, at] = codes[:, None]
    trees = learnt.means(rows)
    middle, spread = trees.mean(axis=1), trees.std(axis=1)
    ends = (middle, middle - spread, middle + spread)
    means, lows, highs = (np.exp(each) if learnt.wide else each for each in ends)
    first = [int(np.flatnonzero(inputs[:, at] == code)[0]) for code in codes]
    values = tuple(known.batch.design(row).get(name) for row in first)
    return Slice(parameter=name, values=values, means=means, lows=lows, highs=highs)


def _few(inputs: Floats) -> Floats:
    """Return a copy of at most :data:`_MOST_ROWS` evenly spaced designs (rows of the inputs)."""
    return inputs[:: -(-len(inputs) // _MOST_ROWS)].copy()


def _inputs(problem: Problem, known: Drawn) -> Floats:
    """Encode designs as numbers, (n, d): a choice by its index, an inactive value as lowest."""
    columns = []
    for parameter in problem.space.parameters:
        if isinstance(parameter, Choice):
            places: dict[Value, float] = {
                value: float(k) for k, value in enumerate(parameter.values)
            }
            numbers = known.batch.lookup(parameter.name, places)
        else:
            numbers = np.asarray(known.batch[parameter.name], dtype=np.float64)
        gone = known.batch.absent(parameter.name)
        present = numbers[~gone]
        low = float(present.min()) - max(float(np.ptp(present)), 1.0) if len(present) else 0.0
        columns.append(np.where(gone, low, numbers))
    return np.column_stack(columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Sample of n designs with the values of an objective, in its own unit and sign."""

    batch: Batch
    values: Floats  # (n,), finite
    fresh: bool
    """Whether the designs were drawn uniformly; otherwise they are the study's trials.

    The trials are not uniform: they are denser where the optimizer searched.
    """


def draw_designs(problem: Problem, trials: Sequence[Trial], objective: Objective) -> Drawn:
    """Draw uniform designs if fast, pure models yield the objective; else return recent trials."""
    asked = objective.expression.names & problem.sources.keys()
    batch = None if asked & problem.unprobed else _uniform(problem)
    got = None if batch is None else problem.known(batch)
    if batch is not None and got is not None and asked <= got.columns.keys():
        return _fresh(batch, got, objective)
    done = Trials.of(trials)
    done = done.take(done.are(State.DONE))
    done = done.take(slice(max(len(done) - MOST_TRIALS, 0), None))
    batch = problem.space.batch([trial.design for trial in done])
    columns = {name: done.column(name) for name in objective.expression.names}
    return _finite(batch, objective, columns, np.ones(len(batch), dtype=bool), fresh=False)


def _uniform(problem: Problem) -> Batch | None:
    """Draw legal designs uniformly; ``None`` if the models are too slow or no design was found."""
    rng = np.random.default_rng(np.random.SeedSequence([problem.seed, _STREAM]))
    try:
        if quick(problem, MODELLED_DRAWS, MOST_S):
            return problem.space.sample(MODELLED_DRAWS, rng)
    except DesignError:
        pass
    return None


def _fresh(batch: Batch, got: Metrics, objective: Objective) -> Drawn:
    fine = np.ones(len(batch), dtype=bool)
    fine[list(got.failures)] = False
    columns = {**batch.columns, **{name: Column(each) for name, each in got.columns.items()}}
    return _finite(batch, objective, columns, fine, fresh=True)


def _finite(
    batch: Batch, objective: Objective, columns: Mapping[str, Column], fine: Mask, *, fresh: bool
) -> Drawn:
    values = objective.values(columns, len(batch))
    rows = np.flatnonzero(fine & np.isfinite(values))
    return Drawn(batch=batch.take(rows), values=values[rows], fresh=fresh)
