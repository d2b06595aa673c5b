"""Constraint violations of designs, from trials' metrics or from models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.objective import Limit
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats, Mask


def trial_violations(problem: Problem, trials: Sequence[Trial]) -> Floats:
    """Return each trial's total constraint violation, (n,): 0 if feasible.

    The violation of a trial without metrics is infinite.
    """
    return weigh_trials(problem, trials)[1]


def weigh_trials(problem: Problem, trials: Sequence[Trial]) -> tuple[Floats, Floats]:
    """Return the trials' losses, (n, m), and total constraint violations, (n,).

    The violation is 0 for a feasible trial and infinite for a trial without metrics.
    """
    columns = problem.columns(trials)
    losses = problem.losses(columns, len(trials))
    total = _outside(problem.slacks(columns, len(trials)))
    done = np.array([trial.state is State.DONE for trial in trials], dtype=bool)
    return losses, np.where(done & np.isfinite(losses).all(axis=1), total, np.inf)


def known_violations(problem: Problem, batch: Batch) -> Floats:
    """Return each design's summed violation of modelled limits, (n,); infinite without a value."""
    known = problem.known(batch)
    columns = {**batch.columns, **{name: Column(v) for name, v in known.columns.items()}}
    slacks = [limit.slacks(columns, len(batch)) for limit in _find_modelled_limits(problem)]
    total = _outside(np.column_stack(slacks)) if slacks else np.zeros(len(batch))
    total[list(known.failures)] = np.inf
    return total


def known_admissible(problem: Problem, batch: Batch) -> Mask:
    """Return which designs have modelled metrics and violate no modelled limit, (n,)."""
    return np.asarray(known_violations(problem, batch) == 0)


def learnt_limits(problem: Problem) -> tuple[Limit, ...]:
    """Return the limits that depend on a measured metric."""
    return tuple(limit for limit in problem.limits if limit.slack.names & problem.measured)


def _find_modelled_limits(problem: Problem) -> tuple[Limit, ...]:
    return tuple(limit for limit in problem.limits if not limit.slack.names & problem.measured)


def _outside(
    slacks: Floats,  # (n, l)
) -> Floats:
    return np.where(np.isnan(slacks), np.inf, np.maximum(-slacks, 0)).sum(axis=1)
