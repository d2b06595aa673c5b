"""Evaluation of consecutive designs of the enumeration, the unit of work of exhaustive search."""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.metric import Metrics
from dse.core.problem import Problem
from dse.core.values import Floats, Mask
from dse.optimizers.exact.running_front import RunningFront, found_in

BATCH = 131_072
"""Designs per batch: a larger one shares more evaluations, a smaller one fits a cache."""


def search_stretch(
    problem: Problem,
    start: int,
    stop: int,
    beaters: Floats,  # (k, m)
) -> RunningFront:
    """Return the front and counts of the designs with indices from ``start`` to ``stop`` - 1.

    Args:
        problem: problem whose objectives and limits are all modelled.
        start: index of the first design in the enumeration.
        stop: index of the last design plus one.
        beaters: losses of some designs before ``start``, by which dominated designs are pruned.
    """
    found = RunningFront.nothing(len(problem.objectives))
    for first in range(start, stop, BATCH):
        batch = problem.space.legal.at_indices(np.arange(first, min(first + BATCH, stop)))
        known = problem.known(batch)
        before = np.concatenate([found.losses, beaters])
        new = found_in(
            *_with_metrics(problem, batch, known),
            first=first,
            beaters=before,
            impossible=impossible_rows(known, len(batch)),
        )
        found = found.joined(new)
    return found


def impossible_rows(known: Metrics, size: int) -> Mask:
    """Return a mask of the designs that an evaluator declares infeasible, (n,)."""
    rows = [row for row, failure in known.failures.items() if failure.kind == "infeasible"]
    mask: Mask = np.zeros(size, dtype=bool)
    mask[rows] = True
    return mask


def judged(problem: Problem, batch: Batch) -> tuple[Floats, Floats, Mask]:
    """Return losses, (n, m), total violations, (n,), and the mask of designs with values, (n,)."""
    return _with_metrics(problem, batch, problem.known(batch))


def _with_metrics(problem: Problem, batch: Batch, known: Metrics) -> tuple[Floats, Floats, Mask]:
    columns = {name: Column(values) for name, values in known.columns.items()}
    losses, violations, possible = judge_with_metrics(problem, batch.with_columns(columns))
    possible[list(known.failures)] = False
    return losses, violations, possible


def judge_with_metrics(problem: Problem, batch: Batch) -> tuple[Floats, Floats, Mask]:
    """Judge designs with known metrics; return losses, (n, m), violations and validity, (n,) each.

    The metrics are columns of the batch, next to the parameters. A violation is the sum over all
    limits; a design is valid if it has values.
    """
    losses = problem.losses(batch.columns, len(batch))
    slacks = problem.slacks(batch.columns, len(batch))
    possible: Mask = np.ones(len(batch), dtype=bool)
    for loss in losses.T:
        possible &= np.isfinite(loss)
    for slack in slacks.T:
        possible &= ~np.isnan(slack)
    return losses, np.maximum(-slacks, 0).sum(axis=1), possible
