"""What a stretch of the enumeration holds: the step that is repeated over all of a space."""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.problem import Problem
from dse.core.values import Floats, Mask
from dse.optimizers.running_front import Found, found_in

BATCH = 131_072
"""Designs at once: larger ones repeat more of what they are made of, smaller ones fit a cache."""


def searched(
    problem: Problem,
    start: int,
    stop: int,
    beaters: Floats,  # (k, m)
) -> Found:
    """What the designs from place ``start`` to before ``stop`` hold.

    Args:
        problem: nothing of what it asks may need a measurement.
        start: the first place in the enumeration.
        stop: the first place after the stretch.
        beaters: losses of designs before ``start``.
    """
    found = Found.nothing(len(problem.objectives))
    for first in range(start, stop, BATCH):
        batch = problem.space.legal.at_indices(np.arange(first, min(first + BATCH, stop)))
        losses, violations, possible = judged(problem, batch)
        known = np.concatenate([found.losses, beaters])
        found = found.joined(found_in(losses, violations, possible, first=first, beaters=known))
    return found


def judged(problem: Problem, batch: Batch) -> tuple[Floats, Floats, Mask]:
    """Losses (n, m), by how much all limits are broken (n,), and which can exist (n,)."""
    known = problem.known(batch)
    columns = {name: Column(values) for name, values in known.columns.items()}
    losses, violations, possible = weighed(problem, batch.with_columns(columns))
    possible[list(known.faults)] = False
    return losses, violations, possible


def weighed(problem: Problem, batch: Batch) -> tuple[Floats, Floats, Mask]:
    """What :func:`judged` tells, of designs whose metrics are columns beside their parameters."""
    losses = problem.losses(batch.columns, len(batch))
    slacks = problem.slacks(batch.columns, len(batch))
    possible: Mask = np.ones(len(batch), dtype=bool)
    for loss in losses.T:
        possible &= np.isfinite(loss)
    for slack in slacks.T:
        possible &= ~np.isnan(slack)
    return losses, np.maximum(-slacks, 0).sum(axis=1), possible
