"""Exchange rates along the front: the cost of one objective in another."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dse.core.pareto import ParetoSet, nondominated
from dse.core.ties import is_tie
from dse.core.trial import Trial
from dse.core.values import Floats, Ints

MOST_PAIRS = 6
"""Of more than four objectives, the first pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A step along the front of two objectives, from ``start`` to ``end``.

    ``gain`` is what the first objective improves by, from ``value``, and ``price`` what the second
    worsens by, both positive; all in the objectives' units. Of other objectives nothing is said.
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
        """The price of one unit of the gain."""
        return self.price / self.gain


def rates(front: ParetoSet) -> list[Rate]:
    """The rates at both ends and in the middle of each pair's front.

    The middle is the step beyond the point nearest to the pair's ideal.
    """
    pairs = list(combinations(range(len(front.problem.objectives)), 2))[:MOST_PAIRS]
    return [rate for pair in pairs for rate in _pair(front, *pair)]


def _pair(front: ParetoSet, first: int, second: int) -> list[Rate]:
    losses = front.losses[:, [first, second]]
    places = np.flatnonzero(nondominated(losses))
    places = places[np.argsort(-losses[places, 0], kind="stable")]  # the first gets better
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
    """Return the places without those that are as good as a neighbour but for rounding."""
    sizes = np.abs(losses[places]).max(axis=0, initial=0.0).tolist()
    kept: list[int] = []
    for place in places.tolist():
        if kept and is_tie(losses[place, 1], losses[kept[-1], 1], sizes[1]):
            kept[-1] = place  # better in the first at no price
        elif not kept or not is_tie(losses[place, 0], losses[kept[-1], 0], sizes[0]):
            kept.append(place)
    return np.array(kept, dtype=np.int64)


def _knee(losses: Floats, places: Ints) -> int:
    """The step that begins at the point nearest to the ideal, or the last before it."""
    some = losses[places]
    shares = (some - some.min(axis=0)) / np.ptp(some, axis=0)
    return min(int(np.argmin((shares**2).sum(axis=1))), len(places) - 2)
