"""The designs that no other design beats, and how much they dominate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import moocore
import numpy as np

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats, Mask

REFERENCE_TRIALS = 10
"""The reference point is frozen once this many trials are within all limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoSet:
    """The front of a study: trials in the order of their first objective, with their losses."""

    problem: Problem
    trials: tuple[Trial, ...]
    losses: Floats  # (n, m), minimised
    reference: Floats | None  # (m,), as losses; None until it is frozen

    @staticmethod
    def of(problem: Problem, trials: Sequence[Trial]) -> ParetoSet:
        """The front of the trials that are done and within every limit."""
        kept = [t for t, ok in zip(trials, problem.feasible(trials), strict=True) if ok]
        losses = problem.trial_losses(kept)
        best = np.flatnonzero(nondominated(losses))
        best = best[np.lexsort(losses[best].T[::-1])]
        return ParetoSet(
            problem=problem,
            trials=tuple(kept[place] for place in best),
            losses=losses[best],
            reference=reference(problem, trials),
        )

    @property
    def hypervolume(self) -> float | None:
        """What the front dominates below the reference point; ``None`` until that is frozen."""
        if self.reference is None:
            return None
        return hypervolume(self.losses, self.reference)

    @property
    def knee(self) -> Trial | None:
        """The trial nearest to the ideal point, each objective scaled to the front's range."""
        if not self.trials:
            return None
        span = np.ptp(self.losses, axis=0)
        shares = (self.losses - self.losses.min(axis=0)) / np.where(span > 0, span, 1.0)
        return self.trials[int(np.argmin((shares**2).sum(axis=1)))]

    @property
    def reference_point(self) -> tuple[float, ...] | None:
        """The reference point in the objectives' own units and signs."""
        if self.reference is None:
            return None
        signs = [1.0 if o.goal == "minimize" else -1.0 for o in self.problem.objectives]
        return tuple(float(s * r) for s, r in zip(signs, self.reference, strict=True))


def nondominated(
    losses: Floats,  # (n, m), minimised
) -> Mask:
    """The rows that no other row dominates, (n,); of equal rows only the first."""
    if not len(losses):
        return np.zeros(0, dtype=bool)
    if losses.shape[1] == 0:
        return np.arange(len(losses)) == 0
    if losses.shape[1] == 1:
        return np.arange(len(losses)) == int(np.argmin(losses[:, 0]))
    if not np.isfinite(losses).all():  # moocore 0.3.2 ends the process with a fault of memory
        ranks = [np.unique(column, return_inverse=True)[1] for column in losses.T]
        losses = np.column_stack(ranks).astype(np.float64)
    return np.asarray(moocore.is_nondominated(losses), dtype=bool)


def hypervolume(
    losses: Floats,  # (n, m), minimised
    reference: Floats,  # (m,)
) -> float:
    """The volume that the rows dominate below ``reference``.

    Source:
        moocore's implementation of Fonseca, Paquete, Lopez-Ibanez: An Improved Dimension-Sweep
        Algorithm for the Hypervolume Indicator, CEC 2006.
    """
    inside = losses[(losses < reference).all(axis=1)] if len(losses) else losses
    if not len(inside):
        return 0.0
    if losses.shape[1] == 1:
        return float(reference[0] - inside.min())
    return float(moocore.hypervolume(inside, ref=reference))


def reference(problem: Problem, trials: Sequence[Trial]) -> Floats | None:
    """The point that hypervolumes are told from, as losses; a pure function of the record.

    The user's, where the study states one; else the worst of the first
    :data:`REFERENCE_TRIALS` trials within all limits, a tenth of their range beyond it, and
    ``None`` until there are so many.
    """
    if problem.fixed_reference is not None:
        signs = [1.0 if o.goal == "minimize" else -1.0 for o in problem.objectives]
        return np.array(signs) * np.array(problem.fixed_reference)
    first = [t for t, ok in zip(trials, problem.feasible(trials), strict=True) if ok]
    if len(first) < REFERENCE_TRIALS:
        return None
    losses = problem.trial_losses(first[:REFERENCE_TRIALS])
    span = np.ptp(losses, axis=0)
    margin = np.where(span > 0, 0.1 * span, 0.1 * np.maximum(np.abs(losses[0]), 1e-12))
    return np.asarray(losses.max(axis=0) + margin)


def hypervolume_trace(problem: Problem, trials: Sequence[Trial]) -> Floats:
    """The hypervolume after each trial, (n,); zero before the reference point is known."""
    point = reference(problem, trials)
    trace = np.zeros(len(trials))
    if point is None:
        return trace
    front = np.zeros((0, len(point)))
    current = 0.0
    losses, feasible = problem.trial_losses(trials), problem.feasible(trials)
    for place, (row, ok) in enumerate(zip(losses, feasible, strict=True)):
        if ok and not (front <= row).all(axis=1).any():
            front = np.vstack([front[~(row <= front).all(axis=1)], row])
            current = hypervolume(front, point)
        trace[place] = current
    return trace
