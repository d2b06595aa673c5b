"""The designs that no other design beats, and how much they dominate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats, Ints, Mask

_LARGEST = np.finfo(np.float64).max

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

    @property
    def hypervolume(self) -> float | None:
        """Hypervolume dominated below the reference point; ``None`` until that is frozen."""
        if self.reference is None:
            return None
        return hypervolume(self.losses, self.reference)

    @property
    def hypervolume_is_exact(self) -> bool:
        """False where so many designs of so many objectives dominate that it is estimated."""
        return self.reference is None or is_exact(self.losses, self.reference)

    @property
    def knee(self) -> Trial | None:
        """The trial nearest to the ideal point, each objective scaled to the front's range."""
        if not self.trials:
            return None
        halves = 0.5 * self.losses  # the range of the largest numbers is none
        span = np.ptp(halves, axis=0)
        shares = (halves - halves.min(axis=0)) / np.where(span > 0, span, 1.0)
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
    """Return the rows that no other row dominates, (n,); of equal rows only the first."""
    if not len(losses):
        return np.zeros(0, dtype=bool)
    if losses.shape[1] == 0:
        return np.arange(len(losses)) == 0
    if losses.shape[1] == 1:
        return np.arange(len(losses)) == int(np.argmin(losses[:, 0]))
    if not np.isfinite(losses).all():  # moocore 0.3.2 ends the process with a fault of memory
        ranks = [np.unique(column, return_inverse=True)[1] for column in losses.T]
        losses = np.column_stack(ranks).astype(np.float64)
    import moocore

    return np.asarray(moocore.is_nondominated(losses), dtype=bool)


def hypervolume(
    losses: Floats,  # (n, m), minimised
    reference: Floats,  # (m,)
) -> float:
    """The volume that the rows dominate below ``reference``.

    Of more rows than :func:`most_exact` it is estimated, always in the same way: within some 0.1 %
    for up to nine objectives and 1 % for twelve, as measured beside exact volumes of random fronts
    on a sphere and in a cube. An estimate may be a little less with one more row. A volume that is
    no number, as of losses of 1e200, is told as the largest number.

    Source:
        moocore's implementation of Fonseca, Paquete, Lopez-Ibanez: An Improved Dimension-Sweep
        Algorithm for the Hypervolume Indicator, CEC 2006; of many rows and objectives that of Deng,
        Zhang: Approximating Hypervolume and Hypervolume Contributions Using Polar Coordinate, IEEE
        Transactions on Evolutionary Computation 2019, on moocore's lattice ``Rphi-FWE+``.
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


MOST_EXACT = {5: 5_000, 6: 400, 7: 150, 8: 70, 9: 45, 10: 35, 11: 28, 12: 25}
"""So many rows' volume is computed within some 0.2 s, by the number of objectives."""


def is_exact(
    losses: Floats,  # (n, m), minimised
    reference: Floats,  # (m,)
) -> bool:
    """Return whether :func:`hypervolume` computes the volume of these rows, or estimates it."""
    inside = int((losses < reference).all(axis=1).sum())
    return inside <= most_exact(losses.shape[1])


def most_exact(objectives: int) -> float:
    """Of how many rows a volume is exact: twice as many would take ten times as long."""
    return np.inf if objectives < min(MOST_EXACT) else MOST_EXACT.get(objectives, 20)


def reference(problem: Problem, trials: Sequence[Trial]) -> Floats | None:
    """Return the reference point of hypervolumes, as losses; a pure function of the record.

    The user's, where the study states one; else the worst of the first
    :data:`REFERENCE_TRIALS` trials within all limits, a tenth of their range beyond it, and
    ``None`` until there are so many.
    """
    if problem.fixed_reference is not None:
        signs = [1.0 if o.goal == "minimize" else -1.0 for o in problem.objectives]
        return np.array(signs) * np.array(problem.fixed_reference)
    losses = _first_answers(problem, trials)
    if len(losses) < REFERENCE_TRIALS:
        return None
    half = np.ptp(0.5 * losses, axis=0)  # the range of the largest numbers is none
    margin = np.where(half > 0, 0.2 * half, 0.1 * np.maximum(np.abs(losses[0]), 1e-12))
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(losses.max(axis=0) + margin, _LARGEST))


def _first_answers(problem: Problem, trials: Sequence[Trial]) -> Floats:
    """The losses of the first answers, at most as many as the reference point is frozen by."""
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
    """The places of the rows that no earlier row is as good as, (k,), in their order.

    A row is one exactly if it is on the front of all rows with their place as one more loss.
    """
    if losses.shape[1] == 0:
        return np.arange(min(len(losses), 1))
    places = np.arange(len(losses), dtype=np.float64)
    return np.flatnonzero(nondominated(np.column_stack([losses, places])))


MOST_EACH = 1_400
"""Of so many rows, of up to five objectives, a trace measures the volume after each."""

LEAST_VOLUMES = 32
"""So many volumes a trace has, however many its rows."""


def hypervolume_trace(problem: Problem, trials: Sequence[Trial]) -> Floats:
    """The hypervolume after each trial, (n,); zero before the reference point is known."""
    point = reference(problem, trials)
    trace = np.zeros(len(trials))
    if point is None or not len(trials):
        return trace
    losses, answers = problem.judged(trials)
    rows = np.flatnonzero(answers & (losses < point).all(axis=1))
    rows = rows[newcomers(losses[rows])]
    trace[rows] = volumes_of(losses[rows], point)
    return np.asarray(np.maximum.accumulate(trace))


def volumes_of(
    losses: Floats,  # (k, m), minimised; no row is as good as a later one
    point: Floats,  # (m,)
) -> Floats:
    """The hypervolume of the first row, of the first two, and so on, (k,).

    Of very many rows those volumes are computed that :func:`_choose_places` names, evenly spaced
    and the last among them; between two of them the earlier one is given. Volumes never fall,
    estimates neither: they are never too much but for the error of :func:`hypervolume`.
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
    """Return the places whose volumes are computed: all, or as many as take no longer."""
    each = min(MOST_EACH, most_exact(objectives) / 2)
    measured = min(count, max(LEAST_VOLUMES, int(each * each / max(count, 1))))
    return np.unique(np.linspace(0, count - 1, measured).round().astype(np.int64)).tolist()
