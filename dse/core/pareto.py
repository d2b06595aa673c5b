"""Pareto front of a study: non-dominated trials, hypervolume and reference point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats, Ints, Mask

_LARGEST = np.finfo(np.float64).max

REFERENCE_TRIALS = 10
"""Number of feasible trials after which the reference point is fixed."""


@dataclass(frozen=True, kw_only=True)
class ParetoSet:
    """Pareto front of a study: trials sorted by their first objective, with their losses.

    A loss is an objective with the sign that makes it minimised.
    """

    problem: Problem
    trials: tuple[Trial, ...]
    losses: Floats  # (n, m), minimised
    reference: Floats | None  # (m,), as losses; None until it is fixed

    @staticmethod
    def of(problem: Problem, trials: Sequence[Trial]) -> ParetoSet:
        """Return the Pareto front of the feasible trials among these trials."""
        losses, answers = problem.judged(trials)
        kept = np.flatnonzero(answers)
        best = kept[nondominated(losses[kept])]
        best = best[np.lexsort(losses[best].T[::-1])]
        return ParetoSet(
            problem=problem,
            trials=tuple(trials[place] for place in best.tolist()),
            losses=losses[best],
            reference=reference(problem, trials),
        )

    @cached_property
    def hypervolume(self) -> float | None:
        """Hypervolume with respect to the reference point; ``None`` until that is fixed.

        With several objectives, an objective with a log scale counts by its natural logarithm.
        """
        if self.reference is None:
            return None
        scaled = self.problem.on_scales
        return hypervolume(scaled(self.losses), scaled(self.reference))

    @property
    def hypervolume_share(self) -> float | None:
        """Share of the volume between reference point and ideal point that the front dominates.

        The share is between 0 and 1. The ideal point has the best value of each objective on the
        front. A design that improves one objective moves it, and lowers the share if it adds little
        volume; for an exact front the ideal point is final. ``None`` until the reference point is
        fixed, and with a single objective, where the share is always 1.
        """
        volume = self.hypervolume
        if volume is None or self.reference is None or self.losses.shape[1] < 2:
            return None
        if not len(self.losses):
            return 0.0
        scaled = self.problem.on_scales
        return hypervolume_share(volume, scaled(self.reference), scaled(self.losses.min(axis=0)))

    @property
    def hypervolume_is_exact(self) -> bool:
        """Whether the hypervolume is exact; it is estimated for large, high-dimensional fronts."""
        return self.reference is None or is_exact(self.losses, self.reference)

    @property
    def knee(self) -> Trial | None:
        """Trial nearest to the ideal point, with each objective scaled by the front's range."""
        if not self.trials:
            return None
        halves = 0.5 * self.losses  # halved, because the range of the largest floats overflows
        span = np.ptp(halves, axis=0)
        shares = (halves - halves.min(axis=0)) / np.where(span > 0, span, 1.0)
        return self.trials[int(np.argmin((shares**2).sum(axis=1)))]

    @property
    def reference_point(self) -> tuple[float, ...] | None:
        """Reference point in the objectives' own units and signs."""
        if self.reference is None:
            return None
        pairs = zip(self.problem.objectives, self.reference, strict=True)
        return tuple(float(objective.sign * point) for objective, point in pairs)


def nondominated(
    losses: Floats,  # (n, m), minimised
) -> Mask:
    """Return the mask of the points that no other point dominates, (n,).

    Of equal points only the first is included.
    """
    if not len(losses):
        return np.zeros(0, dtype=bool)
    if losses.shape[1] == 0:
        return np.arange(len(losses)) == 0
    if losses.shape[1] == 1:
        return np.arange(len(losses)) == int(np.argmin(losses[:, 0]))
    if not np.isfinite(losses).all():  # moocore 0.3.2 crashes on them; ranks dominate alike
        ranks = [np.unique(column, return_inverse=True)[1] for column in losses.T]
        losses = np.column_stack(ranks).astype(np.float64)
    import moocore

    return np.asarray(moocore.is_nondominated(losses), dtype=bool)


def hypervolume(
    losses: Floats,  # (n, m), minimised
    reference: Floats,  # (m,)
) -> float:
    """Return the hypervolume that the points dominate, bounded by the reference point.

    For more points than :func:`most_exact` it is estimated deterministically, within about 0.1 %
    for up to nine objectives and 1 % for twelve, as measured against exact volumes of random fronts
    on a sphere and in a cube. An estimate may decrease slightly when a point is added. A volume
    that overflows, for example with losses of 1e200, is returned as the largest float.

    Source:
        Exact: moocore's implementation of Fonseca, Paquete, Lopez-Ibanez: An Improved
        Dimension-Sweep Algorithm for the Hypervolume Indicator, CEC 2006. Estimated: moocore's
        implementation of Deng, Zhang: Approximating Hypervolume and Hypervolume Contributions Using
        Polar Coordinate, IEEE Transactions on Evolutionary Computation 2019, on moocore's lattice
        ``Rphi-FWE+``.
    """
    import moocore

    inside = losses[(losses < reference).all(axis=1)] if len(losses) else losses
    if not len(inside):
        return 0.0
    if losses.shape[1] == 1:
        volume = float(reference[0]) - float(inside.min())
    elif len(inside) > most_exact(losses.shape[1]):
        volume = float(moocore.hv_approx(inside, ref=reference))
    else:
        volume = float(moocore.hypervolume(inside, ref=reference))
    return volume if np.isfinite(volume) else float(_LARGEST)


def hypervolume_share(
    volume: float,
    reference: Floats,  # (m,)
    ideal: Floats,  # (m,)
) -> float:
    """Return a hypervolume as a share of the volume between two points, from 0 to 1.

    For a fixed ideal point, the share never falls when a design is added. It is computed from
    logarithms, because volumes of small or large units underflow or overflow.

    Args:
        volume: hypervolume with respect to ``reference``.
        reference: reference point, as losses.
        ideal: best value of each objective, as losses. Where it is not better than the reference
            point in every objective, the share is 0.
    """
    spans = 0.5 * reference - 0.5 * ideal  # halved, because their range may overflow
    if volume <= 0 or not (spans > 0).all():
        return 0.0
    return float(min(np.exp(np.log(volume) - (np.log(2) + np.log(spans)).sum()), 1.0))


MOST_EXACT = {5: 5_000, 6: 400, 7: 150, 8: 70, 9: 45, 10: 35, 11: 28, 12: 25}
"""Most rows whose hypervolume is computed exactly in about 0.2 s, by number of objectives."""


def is_exact(
    losses: Floats,  # (n, m), minimised
    reference: Floats,  # (m,)
) -> bool:
    """Return whether :func:`hypervolume` of these points is exact and not estimated."""
    inside = int((losses < reference).all(axis=1).sum())
    return inside <= most_exact(losses.shape[1])


def most_exact(objectives: int) -> float:
    """Return the largest number of points whose hypervolume is computed exactly.

    Args:
        objectives: the number of objectives; with fewer than five there is no limit.
    """
    return np.inf if objectives < min(MOST_EXACT) else MOST_EXACT.get(objectives, 20)


def reference(problem: Problem, trials: Sequence[Trial]) -> Floats | None:
    """Return the hypervolume's reference point as losses, (m,); ``None`` until it is fixed.

    It is the study's reference point if the study gives one. Otherwise it is, in each objective,
    the worst loss of the first :data:`REFERENCE_TRIALS` feasible trials plus a tenth of their
    range, by logarithms where the objective has a log scale, and ``None`` until there are that many
    feasible trials. The result depends only on the study's record.
    """
    if problem.fixed_reference is not None:
        return np.array([o.sign for o in problem.objectives]) * np.array(problem.fixed_reference)
    losses = _first_answers(problem, trials)
    if len(losses) < REFERENCE_TRIALS:
        return None
    if problem.is_scaled:
        point = _beyond(problem.on_scales(losses))
        pairs = zip(problem.objectives, point, strict=True)
        return np.array([float(o.off_scale(np.asarray(loss))) for o, loss in pairs])
    return _beyond(losses)


def _beyond(losses: Floats) -> Floats:
    """Return the worst of n losses in each objective, (m,), plus a tenth of the losses' range."""
    half = np.ptp(0.5 * losses, axis=0)  # halved, because the range of the largest floats overflows
    margin = np.where(half > 0, 0.2 * half, 0.1 * np.maximum(np.abs(losses[0]), 1e-12))
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(losses.max(axis=0) + margin, _LARGEST))


def _first_answers(problem: Problem, trials: Sequence[Trial]) -> Floats:
    """Return the losses of the first :data:`REFERENCE_TRIALS` feasible trials, (n, m)."""
    found = np.zeros((0, len(problem.objectives)))
    start, size = 0, 8 * REFERENCE_TRIALS
    while start < len(trials) and len(found) < REFERENCE_TRIALS:
        losses, answers = problem.judged(trials[start : start + size])
        found = np.vstack([found, losses[answers]])
        start, size = start + size, 2 * size
    return found[:REFERENCE_TRIALS]


def newcomers(
    losses: Floats,  # (n, m), minimised, finite
) -> Ints:
    """Return the indices of the points that no earlier point weakly dominates, (k,), ascending.

    A point weakly dominates another if it is at least as good in every objective.
    """
    if losses.shape[1] == 0:
        return np.arange(min(len(losses), 1))
    places = np.arange(len(losses), dtype=np.float64)
    return np.flatnonzero(nondominated(np.column_stack([losses, places])))


MOST_EACH = 1_400
"""Most rows, with up to five objectives, for which a trace has the volume after each row."""

LEAST_VOLUMES = 32
"""Least number of volumes that a trace computes, if it has that many rows."""


def hypervolume_trace(problem: Problem, trials: Sequence[Trial]) -> Floats:
    """Return the hypervolume after each trial, (n,); all zero without a fixed reference point.

    A reference point that is derived from the trials is used from the first trial on.
    """
    point = reference(problem, trials)
    trace = np.zeros(len(trials))
    if point is None or not len(trials):
        return trace
    losses, answers = problem.judged(trials)
    losses, point = problem.on_scales(losses), problem.on_scales(point)
    rows = np.flatnonzero(answers & (losses < point).all(axis=1))
    rows = rows[newcomers(losses[rows])]
    trace[rows] = volumes_of(losses[rows], point)
    return np.asarray(np.maximum.accumulate(trace))


def volumes_of(
    losses: Floats,  # (k, m), minimised; no row is as good as a later one
    point: Floats,  # (m,)
) -> Floats:
    """Return the hypervolumes of the first point, the first two points, ..., all k points, (k,).

    For very many points only the volumes at the indices of :func:`_choose_places` are computed,
    which are evenly spaced and include the last point; the points in between repeat the previous
    volume. The result never decreases, and exceeds the true volume at most by the error of
    :func:`hypervolume`.
    """
    if losses.shape[1] == 1:
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(point[0] - losses[:, 0], 0.0, _LARGEST))
    volumes = np.zeros(len(losses))
    front, done = losses[:0], 0
    for place in _choose_places(*losses.shape):
        rows = np.vstack([front, losses[done : place + 1]])
        front, done = rows[nondominated(rows)], place + 1
        volumes[place] = hypervolume(front, point)
    return np.asarray(np.maximum.accumulate(volumes))


def _choose_places(count: int, objectives: int) -> list[int]:
    """Return the indices of the points whose hypervolume is computed: all or evenly spaced."""
    each = min(MOST_EACH, most_exact(objectives) / 2)
    measured = min(count, max(LEAST_VOLUMES, int(each * each / max(count, 1))))
    return np.unique(np.linspace(0, count - 1, measured).round().astype(np.int64)).tolist()
