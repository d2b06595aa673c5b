"""Reference set for the comparison of fronts: joint front, reference point and indicators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dse.analysis.indicators import epsilon, igd_plus, r2
from dse.analysis.runs import FrontHistory
from dse.core.pareto import hypervolume, hypervolume_share, nondominated
from dse.core.values import Floats, Ints

Indicator = Literal["hypervolume", "igd+", "epsilon", "r2"]

INDICATORS: tuple[Indicator, ...] = get_args(Indicator)
"""Quality indicators; hypervolume is maximised, the others are minimised."""

MOST_BEST = 2_000
"""Largest joint front used for distances; a larger one is thinned evenly."""


def sign_of(indicator: Indicator) -> float:
    """Return the factor that makes lower indicator values better: -1 for hypervolume, else 1."""
    return -1.0 if indicator == "hypervolume" else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSet:
    """Joint front of all runs, (k, m), and the reference point, (m,), both as losses.

    ``scales`` maps losses to the units in which indicators are computed, see `Problem.on_scales`.
    """

    joint: Floats  # (k, m)
    point: Floats  # (m,)
    scales: Callable[[Floats], Floats] = np.asarray

    @staticmethod
    def of(
        fronts: Sequence[Floats],  # each (f, m)
        point: Floats,  # (m,)
        scales: Callable[[Floats], Floats] = np.asarray,
    ) -> ReferenceSet:
        """Build the reference set of runs from their final fronts and the reference point.

        Args:
            fronts: losses of the runs' final fronts.
            point: the reference point, as losses.
            scales: map of losses to the units in which indicators are computed.
        """
        every = np.vstack(fronts)
        joint = every[nondominated(every)]
        joint = joint[np.lexsort(joint.T[::-1])]
        return ReferenceSet(joint=joint, point=point, scales=scales)

    def value(self, indicator: Indicator, front: Floats) -> float:
        """Return an indicator of a front, (f, m), against this reference set.

        A distance is infinite if the front is empty.
        """
        if indicator == "hypervolume":
            return self._volume(front)
        distance = {"igd+": igd_plus, "epsilon": epsilon, "r2": r2}[indicator]
        found = distance(self.scales(front), self.scales(self._best))
        return np.inf if found is None else found

    def share(self, volume: float) -> float:
        """Return a hypervolume as a share, 0 to 1, of the volume between reference and ideal point.

        The ideal point has the best value of each objective on the joint front of all runs.
        """
        if not len(self.joint):
            return 0.0
        ideal = self.scales(self.joint.min(axis=0))
        return hypervolume_share(volume, self.scales(self.point), ideal)

    @property
    def percent(self) -> float:
        """Factor from a hypervolume to percent of the volume between reference and ideal point."""
        spans = np.zeros(1)
        if len(self.joint):
            spans = self.scales(self.point) - self.scales(self.joint.min(axis=0))
        with np.errstate(over="ignore", divide="ignore"):
            factor = 100.0 / float(np.prod(spans)) if (spans > 0).all() else 0.0
        return factor if np.isfinite(factor) else 0.0

    def values(
        self,
        course: FrontHistory,
        arrived: Ints,  # (g,)
    ) -> dict[Indicator, Floats]:
        """Return each indicator, (g,), of the front that a run had after each number of newcomers.

        A newcomer is a trial that enters the front when it finishes; ``arrived`` holds the g
        numbers.
        """
        different, place = np.unique(arrived, return_inverse=True)
        fronts = [course.front(count) for count in different.tolist()]
        return {
            indicator: np.array([self.value(indicator, front) for front in fronts])[place]
            for indicator in INDICATORS
        }

    def needed(self, course: FrontHistory, level: float) -> int | None:
        """Return the number of newcomers until a hypervolume is reached; ``None`` if never.

        A newcomer is a trial that enters the front when it finishes.
        """
        low, high = 0, len(course.rows)
        if self._volume(course.front(high)) < level:
            return None
        while low < high:  # the hypervolume never falls
            middle = (low + high) // 2
            reached = self._volume(course.front(middle)) >= level
            low, high = (low, middle) if reached else (middle + 1, high)
        return low

    def _volume(self, front: Floats) -> float:
        return hypervolume(self.scales(front), self.scales(self.point))

    @property
    def _best(self) -> Floats:
        if len(self.joint) <= MOST_BEST:
            return self.joint
        rows = np.linspace(0, len(self.joint) - 1, MOST_BEST).round().astype(np.int64)
        return np.asarray(self.joint[rows])
