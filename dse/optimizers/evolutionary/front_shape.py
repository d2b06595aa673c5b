"""Estimate of a Pareto front's shape: the power p of the unit p-norm surface that fits it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from dse.core.values import Array, Floats, Ints

_LEAST_POWER = 0.1
_MOST_POWER = 20.0
"""Bounds of p, as in the author's code; beyond them a front is a corner and powers overflow."""

_LEAST = 1e-8
"""Lower bound of distances."""

_MOST_SHARE = 1e60
"""Upper bound of relative losses; a product of four is finite."""

_TILT = 1e-6
"""Tilt of the axes, so that a member at the ideal point is not the extreme of an axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontShape:
    """Shape of a Pareto front, approximated by the unit surface of a p-norm.

    The exponent p is ``power``. Losses are taken relative to the ideal point, in units of
    ``spans``. The front is convex (bent towards the ideal point) below power 1, flat at 1, and a
    sphere at 2. ``ends`` are the indices of its extreme members, nearest to the axes.

    Source:
        Panichella: An Improved Pareto Front Modeling Algorithm for Large-Scale Many-Objective
        Optimization, GECCO 2022, section 3.
    """

    ideal: Floats  # (m,)
    spans: Floats  # (m,)
    ends: Ints  # (m,), or all if there are fewer members
    power: float

    @staticmethod
    def of(
        front: Floats,  # (n, m)
    ) -> FrontShape:
        """Estimate the shape of a front from its n losses, (n, m), with n >= 1."""
        ideal = front.min(axis=0)
        with np.errstate(over="ignore"):
            worst = np.minimum(front.max(axis=0) - ideal, np.finfo(np.float64).max)
        worst = np.where(worst > 0, worst, 1.0)
        points = shares(front, ideal, worst)
        ends = _ends(points)
        cuts = _cuts(points, ends)
        power = _power(points / cuts, ends)
        return FrontShape(ideal=ideal, spans=worst * cuts, ends=ends, power=power)

    def nearness(
        self,
        losses: Floats,  # (n, m)
    ) -> Floats:
        """Return the inverse distance of each member from the ideal point, (n,), in the p-norm."""
        return 1 / self._norms(shares(losses, self.ideal, self.spans))

    def spread(
        self,
        front: Floats,  # (n, m), the front that the shape was estimated from
    ) -> Floats:
        """Score how much each member adds to a front's diversity, (n,); infinite for extremes.

        Members are scored greedily: the next is the one with the largest sum of distances to its
        two nearest members scored so far. That sum is its score; distances are divided by the
        member's distance from the ideal point.
        """
        points = (front - self.ideal) / self.spans
        scores = np.full(len(points), np.inf)
        apart = self._distances(points) / self._norms(points)[:, None]
        left = np.setdiff1d(np.arange(len(points)), self.ends)
        nearest = np.sort(apart[np.ix_(left, self.ends)], axis=1)[:, :2]  # (left, 2)
        while len(left):
            best = int(np.argmax(nearest.sum(axis=1)))
            scores[left[best]] = nearest[best].sum()
            newcomer = apart[left, left[best]]
            nearest = np.sort(np.column_stack([nearest, newcomer]), axis=1)[:, :2]
            left, nearest = np.delete(left, best), np.delete(nearest, best, axis=0)
        return scores

    def _norms(
        self,
        points: Floats,  # (..., m)
    ) -> Array:
        total = (np.maximum(points, 0) ** self.power).sum(axis=-1) ** (1 / self.power)
        return np.maximum(total, _LEAST)

    def _distances(
        self,
        points: Floats,  # (n, m)
    ) -> Array:
        """Return approximate geodesic distances between all pairs along the front's shape, (n, n).

        Each is the length from one member to the other through their midpoint projected on the
        shape.
        """
        on = points / self._norms(points)[:, None]
        middle = (on[:, None, :] + on[None, :, :]) / 2
        middle /= self._norms(middle)[:, :, None]
        half = np.linalg.norm(on[:, None, :] - middle, axis=-1)
        return np.maximum(half + half.T, _LEAST)


def _ends(
    points: Floats,  # (n, m), from 0, the ideal, to 1, the worst of each
) -> Ints:
    """Return the index of the member nearest to each axis; a member is used only once."""
    size, axes = points.shape
    if size <= axes:
        return np.arange(size)
    taken: list[int] = []
    for axis in np.eye(axes) + _TILT:
        along = points @ axis / (axis @ axis)
        away = ((points - along[:, None] * axis) ** 2).sum(axis=1)
        away[taken] = np.inf
        taken.append(int(np.argmin(away)))
    return np.array(taken)


def _cuts(
    points: Floats,  # (n, m), from 0, the ideal, to 1, the worst of each
    ends: Ints,
) -> Floats:
    """Return the axis intercepts of the hyperplane through the extreme members, (m,).

    They are ones if there is no such hyperplane.
    """
    worst = np.ones(points.shape[1])
    if len(ends) < points.shape[1]:
        return worst
    try:
        plane = np.linalg.solve(points[ends], worst)
    except np.linalg.LinAlgError:
        return worst
    return 1 / plane if (plane > _LEAST).all() else worst


def _power(
    points: Floats,  # (n, m), scaled
    ends: Ints,
) -> float:
    """Return the power p at which the p-norm of the front's central member is one.

    The central member is the non-extreme member nearest to the ideal point; without one, p is 1.
    """
    inner = np.delete(points, ends, axis=0)
    if not len(inner):
        return 1.0
    middle = inner[np.argmin((inner**2).sum(axis=1))]
    middle = middle[middle > 0]

    def excess(power: float) -> float:
        return float((middle**power).sum() - 1)

    low, high = excess(_LEAST_POWER), excess(_MOST_POWER)
    if low <= 0:
        return 1.0
    if high >= 0:
        return _MOST_POWER
    return float(brentq(excess, _LEAST_POWER, _MOST_POWER))


def shares(
    losses: Floats,  # (n, m)
    ideal: Floats,  # (m,)
    span: Floats,  # (m,), above 0
) -> Floats:
    """Return each loss's distance from the ideal point, as a multiple of the front's span, (n, m).

    The distance is at most 1e60.
    """
    with np.errstate(over="ignore"):  # halved, since the difference of large numbers may overflow
        return np.asarray(np.minimum((0.5 * losses - 0.5 * ideal) / (0.5 * span), _MOST_SHARE))
