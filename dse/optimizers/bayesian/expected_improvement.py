"""Expected hypervolume improvement of a measurement that many designs share.

A measured setting s is the values of the parameters that the measurement reads; its completions are
the designs that have it. Losses are either learnt, ``u``, or known, ``k``. A setting s has one u,
with a posterior from a surrogate, and a conditional front K(s): the non-dominated known losses of
its completions. The gain is the integral of P(u(s) <= z) over all points (z, x) below the reference
point that the archive does not dominate and whose x is weakly dominated by a member of K(s). The
losses u are assumed to be independent.

Source:
    Emmerich, Deutz, Klinkenberg: Hypervolume-based expected improvement: Monotonicity properties
    and exact computation, CEC 2011, for K empty; the slices are the same integral with the order
    of the axes changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from dse.core.pareto import hypervolume, nondominated
from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.metric_model import Prediction

Box = tuple[tuple[float, ...], tuple[float, ...]]
"""Lower and upper corner of a box."""

_BOXES = 4
"""Most learnt losses that are integrated by box decomposition."""
MOST_FRONT = {1: 500, 2: 500, 3: 256, 4: 96}
"""Most members of the archive, by the number of objectives; 500 for more than four."""
_DARTS = 4_096
_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Losses that finished designs attain, measured and modelled, with the reference points.

    Learnt losses are those that a surrogate predicts.
    """

    learnt: Floats  # (n, a)
    known: Floats  # (n, b)
    learnt_reference: Floats  # (a,)
    known_reference: Floats  # (b,)

    @property
    def best(self) -> Archive:
        """Non-dominated subset of the attained losses."""
        every = np.hstack([self.learnt, self.known])
        rows = np.flatnonzero(nondominated(every)) if len(every) else np.zeros(0, dtype=int)
        return Archive(
            learnt=self.learnt[rows],
            known=self.known[rows],
            learnt_reference=self.learnt_reference,
            known_reference=self.known_reference,
        )

    @property
    def volume(self) -> float:
        """Hypervolume that the archive dominates up to its reference point; 0 if it is empty."""
        every = np.hstack([self.learnt, self.known])
        top = np.append(self.learnt_reference, self.known_reference)
        return hypervolume(every, top) if len(every) else 0.0

    @property
    def bounded(self) -> Archive:
        """Subset of at most :data:`MOST_FRONT` points, evenly spread, including each best loss."""
        every = np.hstack([self.learnt, self.known])
        rows = spread_rows(every, MOST_FRONT.get(every.shape[1], 500))
        return Archive(
            learnt=self.learnt[rows],
            known=self.known[rows],
            learnt_reference=self.learnt_reference,
            known_reference=self.known_reference,
        )


def spread_rows(
    losses: Floats,  # (n, m)
    most: int,
) -> Ints:
    """Return the indices of at most ``most`` evenly spread points, in ascending order.

    The best point of each objective comes first, then repeatedly the point farthest from those
    chosen, with each objective scaled to its range.
    """
    if len(losses) <= most:
        return np.arange(len(losses))
    span = np.ptp(losses, axis=0)
    points = (losses - losses.min(axis=0)) / np.where(span > 0, span, 1.0)
    chosen = list(dict.fromkeys(points.argmin(axis=0).tolist()))[:most]
    away = np.min([((points - points[row]) ** 2).sum(axis=1) for row in chosen], axis=0)
    while len(chosen) < most:
        row = int(away.argmax())
        chosen.append(row)
        away = np.minimum(away, ((points - points[row]) ** 2).sum(axis=1))
    return np.sort(np.unique(chosen))


def expected_gains(
    archive: Archive,
    predictions: Sequence[Prediction],  # a of them, each for n settings
    conditional_fronts: Sequence[Floats],  # conditional fronts, (r, b) each
    groups: Ints,  # (n,), the front of each setting; -1 without one
    rng: np.random.Generator,
) -> Floats:
    """Return the expected hypervolume improvement of n candidate measurements, (n,).

    A candidate is a combination of values of the parameters that a measurement reads. Its
    improvement is that of all designs with these values.
    """
    gains = np.zeros(len(groups))
    rows = np.flatnonzero(groups >= 0)
    chosen = [one.take(rows) for one in predictions]
    if not len(rows):
        return gains
    known = archive.known.shape[1]
    if not known and len(chosen) <= _BOXES:
        gains[rows] = _integrate_boxes(archive, chosen)
    elif len(chosen) == 1 and known <= 2:
        gains[rows] = _integrate_slices(archive, chosen[0], conditional_fronts, groups[rows])
    else:
        gains[rows] = _integrate_points(archive, chosen, conditional_fronts, groups[rows], rng)
    return gains


def _integrate_boxes(archive: Archive, predictions: Sequence[Prediction]) -> Floats:
    """Return the improvement of each setting if all losses are learnt, as a sum over boxes.

    The boxes cover the non-dominated region; each contributes a product of one-dimensional
    integrals.
    """
    lower, upper = open_boxes(archive.learnt, archive.learnt_reference)
    size = len(predictions[0].means)
    step = max(1, _CHUNK // max(len(lower), 1))
    found = [
        _over_boxes(
            [one.take(np.arange(start, min(start + step, size))) for one in predictions],
            lower,
            upper,
        )
        for start in range(0, size, step)
    ]
    return np.concatenate(found)


def _over_boxes(predictions: Sequence[Prediction], lower: Floats, upper: Floats) -> Floats:
    volume = np.ones((len(predictions[0].means), len(lower)))
    for place, prediction in enumerate(predictions):
        edges = np.unique(np.concatenate([lower[:, place], upper[:, place]]))
        edges = edges[np.isfinite(edges)]
        gain = np.hstack([np.zeros((len(volume), 1)), prediction.gain(edges)])
        first = np.where(
            np.isfinite(lower[:, place]), 1 + np.searchsorted(edges, lower[:, place]), 0
        )
        last = 1 + np.searchsorted(edges, upper[:, place])
        volume *= np.maximum(gain[:, last] - gain[:, first], 0.0)
    return volume.sum(axis=1)


def _integrate_slices(
    archive: Archive, prediction: Prediction, conditional_fronts: Sequence[Floats], groups: Ints
) -> Floats:
    """Return each setting's improvement with one learnt loss, as a sum over slices of that loss.

    The slices end at the archive's values of the loss. Each contributes the area in known losses
    that K(s) adds to the archive there. EHVI(s) = sum over slices i of A_i(s) (psi(z_{i+1}) -
    psi(z_i)), psi(z) = E[max(z - u, 0)].
    """
    reference = float(archive.learnt_reference[0])
    inside = archive.learnt[:, 0] < reference
    heights = np.unique(archive.learnt[inside, 0])
    steps = np.append(heights, reference)
    psi = prediction.gain(steps)
    widths = np.diff(np.hstack([np.zeros((len(psi), 1)), psi]), axis=1)
    levels = np.searchsorted(heights, archive.learnt[inside, 0])
    known = archive.known[inside]
    areas = _lengths if known.shape[1] == 1 else _areas
    table = areas(known, levels, len(steps), conditional_fronts, archive.known_reference)
    return np.asarray((table[groups] * np.maximum(widths, 0.0)).sum(axis=1))


def _lengths(
    known: Floats,
    levels: Ints,
    slices: int,
    conditional_fronts: Sequence[Floats],
    reference: Floats,
) -> Floats:
    """Return how far each front improves the archive's best value in each slice.

    The result has shape (fronts, slices). With one known loss, it is the archive's best value in
    the slice minus the front's minimum, or 0.
    """
    floor = np.full(slices, reference[0])
    for value, level in zip(known[:, 0].tolist(), levels.tolist(), strict=True):
        floor[level + 1 :] = np.minimum(floor[level + 1 :], value)
    own = np.array([rows[:, 0].min() for rows in conditional_fronts])
    return np.maximum(floor[None, :] - own[:, None], 0.0)


def _areas(
    known: Floats,
    levels: Ints,
    slices: int,
    conditional_fronts: Sequence[Floats],
    reference: Floats,
) -> Floats:
    """Return the area that each front adds to each slice in two known losses, (fronts, slices).

    The boundaries of the front and of the archive are step functions of the first known loss, so
    their difference is constant between steps.
    """
    edges = np.unique(known[:, 0])
    floor = np.full((slices, len(edges) + 1), reference[1])  # column j: between edges j-1 and j
    columns = 1 + np.searchsorted(edges, known[:, 0])
    for (_, second), level, column in zip(known, levels, columns, strict=True):
        part = floor[level + 1 :, column:]
        np.minimum(part, second, out=part)
    table = np.zeros((len(conditional_fronts), slices))
    for place, rows in enumerate(conditional_fronts):
        own = rows[np.argsort(rows[:, 0], kind="stable")]
        own = own[(own[:, 0] < reference[0]) & (own[:, 1] < reference[1])]
        if not len(own):
            continue
        low = np.minimum.accumulate(own[:, 1])
        grid = np.unique(np.concatenate([own[:, 0], edges[edges > own[0, 0]]]))
        grid = grid[grid < reference[0]]
        widths = np.diff(np.append(grid, reference[0]))
        height = low[np.searchsorted(own[:, 0], grid, side="right") - 1]
        there = floor[:, np.searchsorted(edges, grid, side="right")]
        table[place] = np.maximum(there - height, 0.0) @ widths
    return table


def _integrate_points(
    archive: Archive,
    predictions: Sequence[Prediction],
    conditional_fronts: Sequence[Floats],
    groups: Ints,
    rng: np.random.Generator,
) -> Floats:
    """Estimate the improvement by quasi-Monte Carlo points in the non-dominated region.

    P(u <= z) is exact at each point.
    """
    best = archive.best
    front = np.hstack([best.learnt, best.known])
    top = np.append(best.learnt_reference, best.known_reference)
    hopes = [float(one.at(-2.0).min()) for one in predictions]
    reach = (
        np.min([rows.min(axis=0) for rows in conditional_fronts], axis=0)
        if conditional_fronts
        else np.zeros(0)
    )
    low = np.minimum(np.append(hopes, reach), top)
    darts = low + (top - low) * qmc.Sobol(len(top), rng=rng).random(_DARTS)
    for member in front:
        darts = darts[~(member <= darts).all(axis=1)]
    if not len(darts):
        return np.zeros(len(groups))
    count = len(predictions)
    reached = np.array(
        [
            (rows[:, None, :] <= darts[None, :, count:]).all(axis=2).any(axis=0)
            for rows in conditional_fronts
        ]
    ).reshape(len(conditional_fronts), -1)
    found = np.empty(len(groups))
    step = max(1, _CHUNK // len(darts))
    for start in range(0, len(groups), step):
        rows = np.arange(start, min(start + step, len(groups)))
        chance = reached[groups[rows]].astype(float)
        for place, one in enumerate(predictions):
            chance *= one.take(rows).below(darts[:, place])
        found[rows] = chance.sum(axis=1)
    return found * float((top - low).prod()) / _DARTS


def open_boxes(
    front: Floats,  # (n, m), losses
    reference: Floats,  # (m,)
) -> tuple[Floats, Floats]:
    """Return disjoint boxes that cover the non-dominated space up to the reference point.

    Returns:
        Lower and upper corners, each (boxes, m); lower corners may be minus infinity.

    Source:
        A sweep along the last objective, as in Lacour, Klamroth, Fonseca: A Box Decomposition
        Algorithm to Compute the Hypervolume Indicator, 2017: a box ends where a new member of the
        front cuts the box's cross section.
    """
    inside = front[(front < reference).all(axis=1)]
    boxes = _swept([tuple(row) for row in inside.tolist()], tuple(reference.tolist()))
    lower = np.array([box[0] for box in boxes]).reshape(-1, len(reference))
    upper = np.array([box[1] for box in boxes]).reshape(-1, len(reference))
    return lower, upper


def _swept(members: list[tuple[float, ...]], reference: tuple[float, ...]) -> list[Box]:
    if len(reference) == 1:
        top = min([member[0] for member in members], default=reference[0])
        return [((-np.inf,), (min(top, reference[0]),))]
    if len(reference) == 2:
        return _steps(members, reference)
    members = sorted(members, key=lambda member: member[-1])
    inner = reference[:-1]
    begun = dict.fromkeys(_swept([], inner), -np.inf)
    done: list[Box] = []
    shadow: list[tuple[float, ...]] = []
    for member in members:
        height, flat = member[-1], member[:-1]
        if any(all(a <= b for a, b in zip(old, flat, strict=True)) for old in shadow):
            continue
        shadow = [old for old in shadow if not all(a <= b for a, b in zip(flat, old, strict=True))]
        shadow.append(flat)
        now = set(_swept(shadow, inner))
        for box in [box for box in begun if box not in now]:
            start = begun.pop(box)
            if start < height:
                done.append((box[0] + (start,), box[1] + (height,)))
        for box in sorted(now - begun.keys()):
            begun[box] = height
    done += [(box[0] + (start,), box[1] + (reference[-1],)) for box, start in begun.items()]
    return done


def _steps(members: list[tuple[float, ...]], reference: tuple[float, ...]) -> list[Box]:
    """Return the non-dominated boxes of two objectives, as columns from left to right.

    Each column lies between neighbouring members of the front along the first objective; its height
    is the second objective of the member to its left, or of the reference point for the first
    column.
    """
    boxes: list[Box] = []
    left, height = -np.inf, reference[1]
    for first, second in sorted(members):
        if second >= height:
            continue
        if first > left:
            boxes.append(((left, -np.inf), (first, height)))
        left, height = first, second
    boxes.append(((left, -np.inf), (reference[0], height)))
    return boxes
