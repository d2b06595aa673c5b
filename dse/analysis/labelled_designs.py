"""Designs labelled with the values of one objective, as training data for importance analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.analysis.model_speed import quick
from dse.core.batch import Batch, Column
from dse.core.metric import Metrics
from dse.core.objective import Objective
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import Trials
from dse.core.values import Floats, Mask
from dse.errors import DesignError

MODELLED_DRAWS = 2_000
"""Number of legal designs drawn if the objective is purely modelled, and so costs nothing."""

MOST_S = 5.0
"""Largest time to model these designs, in s; for slower models the trials are used instead."""

MOST_TRIALS = 5_000
"""Largest number of trials used: the last ones."""

_STREAM = 7_001
"""Random stream, so that these draws are independent of those of the optimizers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Batch of n designs with the values of an objective, in its own unit and sign."""

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
    fine[list(got.faults)] = False
    columns = {**batch.columns, **{name: Column(each) for name, each in got.columns.items()}}
    return _finite(batch, objective, columns, fine, fresh=True)


def _finite(
    batch: Batch, objective: Objective, columns: Mapping[str, Column], fine: Mask, *, fresh: bool
) -> Drawn:
    values = objective.values(columns, len(batch))
    rows = np.flatnonzero(fine & np.isfinite(values))
    return Drawn(batch=batch.take(rows), values=values[rows], fresh=fresh)
