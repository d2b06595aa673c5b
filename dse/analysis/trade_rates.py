"""Trade-off rates along the front: the loss in one objective per gain in another."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dse.core.pareto import ParetoSet, nondominated
from dse.core.ties import is_tie
from dse.core.trial import Trial
from dse.core.values import Floats, Ints

MOST_PAIRS = 6
"""Largest number of pairs of objectives: all pairs of four; of more objectives, the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Trade-off between two objectives: one step along their front, from ``start`` to ``end``.

    The first objective improves from ``value`` by ``gain``, and the second worsens by ``price``;
    both are positive, in the objectives' units. Other objectives are ignored.
    """

    first: int
    second: int
    start: Trial
    end: Trial
    value: float
    gain: float
    price: float
    where: str

    @property
    def each(self) -> float:
        """Loss in the second objective per unit of gain in the first."""
        return self.price / self.gain


def rates(front: ParetoSet) -> list[Rate]:
    """Return the trade-off rates at both ends and the knee of each objective pair's front.

    The knee is the step that begins at the point nearest to the pair's ideal point, with both
    objectives scaled to the range of the front.
    """
    pairs = list(combinations(range(len(front.problem.objectives)), 2))[:MOST_PAIRS]
    return [rate for pair in pairs for rate in _pair(front, *pair)]


def _pair(front: ParetoSet, first: int, second: int) -> list[Rate]:
    losses = front.losses[:, [first, second]]
    places = np.flatnonzero(nondominated(losses))
    places = places[np.argsort(-losses[places, 0], kind="stable")]  # the first objective improves
    places = _without_ties(losses, places)
    steps = len(places) - 1
    if steps < 1:
        return []
    at = {0: "where it is cheapest", _knee(losses, places): "at the knee", steps - 1: "at the end"}
    if steps == 1:
        at = {0: "between the only two"}
    return [
        Rate(
            first=first,
            second=second,
            start=front.trials[int(places[step])],
            end=front.trials[int(places[step + 1])],
            value=abs(float(losses[places[step], 0])),
            gain=float(losses[places[step], 0] - losses[places[step + 1], 0]),
            price=float(losses[places[step + 1], 1] - losses[places[step], 1]),
            where=where,
        )
        for step, where in sorted(at.items())
    ]


def _without_ties(losses: Floats, places: Ints) -> Ints:
    """Return the indices ``places`` of front points, without points that tie in one objective.

    Of two neighbours that tie, the point that is better in the other objective is kept.
    """
    sizes = np.abs(losses[places]).max(axis=0, initial=0.0).tolist()
    kept: list[int] = []
    for place in places.tolist():
        if kept and is_tie(losses[place, 1], losses[kept[-1], 1], sizes[1]):
            kept[-1] = place  # better in the first at no price
        elif not kept or not is_tie(losses[place, 0], losses[kept[-1], 0], sizes[0]):
            kept.append(place)
    return np.array(kept, dtype=np.int64)


def _knee(losses: Floats, places: Ints) -> int:
    """Return the index of the step that begins at the point nearest to the ideal point.

    If this is the last point, where no step begins, return the last step.
    """
    some = losses[places]
    shares = (some - some.min(axis=0)) / np.ptp(some, axis=0)
    return min(int(np.argmin((shares**2).sum(axis=1))), len(places) - 2)
