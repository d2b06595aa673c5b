"""Progress of a study over the budget that it spent."""

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
    """The hypervolume after each finished trial, beside all that was spent by then.

    ``seconds`` are those that evaluators worked, whether or not they worked at the same time.
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
        """The progress of these trials.

        Args:
            problem: the question.
            trials: in the order in which they were finished; unfinished ones are passed over.
            reference_point: in the objectives' own units; without one no volume can be told, and
                it stays zero.
            counted: what ``counts`` counts.
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
    """Return the unit of progress: trials if none cost a measurement, else measurements."""
    return "measurements" if Trials.of(trials).measured.any() else "trials"


def igd_plus(
    losses: Floats,  # (n, m), minimised
    best: Floats,  # (k, m), minimised
) -> float | None:
    """Return the IGD+ from the best front, in shares of that front's range.

    The distance is averaged over the best front; ``None`` where either front is empty.

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
    """The least step, in shares of the best front's range, by which the rows would cover it.

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
    """Return the R2 indicator: the mean weighted loss, in shares of the best front's range.

    For each weighing, the least of the rows' largest weighted distances from the ideal point of
    the best front; the mean is over all weighings for two objectives, and over an even lattice of
    at most :data:`LATTICE` for more.

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
    columns = np.ascontiguousarray(shares.T)  # the largest of few is found faster column by column
    least = [np.maximum.reduce(weights[:, None] * columns).min() for weights in lattice(size)]
    return float(np.mean(least))


LATTICE = 500
"""The most weighings that R2 is averaged over."""


@lru_cache(maxsize=8)
def lattice(size: int) -> Floats:
    """Even weights of so many objectives that add up to one, (w, size)."""
    steps = 1
    while comb(steps + size, size - 1) <= LATTICE:
        steps += 1
    bars = np.array(list(combinations(range(steps + size - 1), size - 1)))
    ends = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), steps + size - 1)])
    return np.asarray((np.diff(ends, axis=1) - 1) / steps)


def _shares(losses: Floats, best: Floats) -> Floats:
    """The losses with the best front's range as the unit of each objective."""
    low, span = best.min(axis=0), np.ptp(best, axis=0)
    return np.asarray((losses - low) / np.where(span > 0, span, 1.0))
