"""Quality indicators of fronts (IGD+, epsilon, R2) and the hypervolume curve of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dse.core.pareto import hypervolume_trace
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.trials import Trials
from dse.core.values import Floats, Ints

Spent = NDArray[np.int64] | NDArray[np.float64]

Counted = Literal["measurements", "trials"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HypervolumeCurve:
    """Hypervolume after each finished trial, with the cumulative budget spent.

    ``seconds`` is the sum of the evaluation times, also where evaluations ran concurrently.
    """

    counts: Ints  # (n,), cumulative measurements, or trials
    seconds: Floats  # (n,), cumulative
    hypervolume: Floats  # (n,)

    @staticmethod
    def of(
        problem: Problem,
        trials: Sequence[Trial],
        reference_point: Sequence[float] | None,
        counted: Counted,
    ) -> HypervolumeCurve:
        """Compute the hypervolume after each of some finished trials, with the budget spent.

        Args:
            problem: the problem of the study.
            trials: in the order in which they finished; unfinished ones are ignored.
            reference_point: in the objectives' own units and signs; without one all hypervolumes
                are 0.
            counted: what ``counts`` holds: cumulative measurements or trials.
        """
        held = Trials.of(trials)
        finished = held.take(held.over)
        each = finished.measured if counted == "measurements" else np.ones_like(finished.measured)
        volumes = np.zeros(len(finished))
        if reference_point is not None:
            fixed = replace(problem, fixed_reference=tuple(reference_point))
            volumes = hypervolume_trace(fixed, finished)
        return HypervolumeCurve(
            counts=np.cumsum(each),
            seconds=np.cumsum(finished.cost_s),
            hypervolume=volumes,
        )


def counted_in(trials: Sequence[Trial]) -> Counted:
    """Return the unit of a curve's x axis: measurements, or trials if no trial is a measurement."""
    return "measurements" if Trials.of(trials).measured.any() else "trials"


def igd_plus(
    losses: Floats,  # (n, m), minimised
    best: Floats,  # (k, m), minimised
) -> float | None:
    """Return a front's IGD+ to the best front, with objectives scaled by the best front's range.

    The distance is averaged over the points of the best front; ``None`` if either front is empty.

    Source:
        Ishibuchi, Masuda, Tanigaki, Nojima: Modified Distance Calculation in Generational
        Distance and Inverted Generational Distance, EMO 2015; computed by moocore.
    """
    if not len(losses) or not len(best):
        return None
    import moocore

    return float(moocore.igd_plus(_shares(losses, best), ref=_shares(best, best)))


def epsilon(
    losses: Floats,  # (n, m), minimised
    best: Floats,  # (k, m), minimised
) -> float | None:
    """Return the additive epsilon indicator, with the objectives scaled by the best front's range.

    The indicator is the least amount by which all losses of the front must be lowered for it to
    weakly dominate the best front; ``None`` if either front is empty.

    Source:
        Zitzler, Thiele, Laumanns, Fonseca, Grunert da Fonseca: Performance Assessment of
        Multiobjective Optimizers, 2003, the additive epsilon indicator; computed by moocore.
    """
    if not len(losses) or not len(best):
        return None
    import moocore

    return float(moocore.epsilon_additive(_shares(losses, best), ref=_shares(best, best)))


def r2(
    losses: Floats,  # (n, m), minimised
    best: Floats,  # (k, m), minimised
) -> float | None:
    """Return the R2 indicator, with the objectives scaled by the best front's range.

    The indicator is the mean over weight vectors of the smallest weighted Chebyshev distance of the
    front's points from the ideal point of the best front: over all weights for two objectives, over
    a simplex lattice of at most :data:`LATTICE` weights for more. ``None`` if either front is
    empty.

    Source:
        Hansen, Jaszkiewicz: Evaluating the Quality of Approximations to the Non-dominated Set,
        1998, R2; Schaepermeier, Kerschke: R2 v2, 2025, exact for two objectives, by moocore.
    """
    if not len(losses) or not len(best):
        return None
    shares = np.maximum(_shares(losses, best), 0.0)  # (n, m)
    size = shares.shape[1]
    if size == 1:
        return float(shares.min())
    if size == 2:
        import moocore

        return float(moocore.r2_exact(shares, ref=np.zeros(2)))
    columns = np.ascontiguousarray(
        shares.T
    )  # a maximum over few columns is faster column by column
    least = [np.maximum.reduce(weights[:, None] * columns).min() for weights in lattice(size)]
    return float(np.mean(least))


LATTICE = 500
"""Largest number of weight vectors that R2 is averaged over."""


@lru_cache(maxsize=8)
def lattice(size: int) -> Floats:
    """Return the simplex lattice of weight vectors that each sum to one, (w, objectives)."""
    steps = 1
    while comb(steps + size, size - 1) <= LATTICE:
        steps += 1
    bars = np.array(list(combinations(range(steps + size - 1), size - 1)))
    ends = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), steps + size - 1)])
    return np.asarray((np.diff(ends, axis=1) - 1) / steps)


def _shares(losses: Floats, best: Floats) -> Floats:
    """Scale the losses linearly, so that the best front has the range 0 to 1 per objective."""
    low, span = best.min(axis=0), np.ptp(best, axis=0)
    return np.asarray((losses - low) / np.where(span > 0, span, 1.0))
