"""Hypervolume gap of a study (what its front may still lack), recorded as events."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dse.core.trial import Event

KIND = "gap"
"""Kind of the events that record the gap, as a sentence."""

UNDECIDED = "undecided"
"""Kind of the events that record the optimistic objective values of undecided designs, as JSON."""

REACHED = "gap reached"
"""Kind of the event that records that a study stopped by its gap."""

MOST_POINTS = 64
"""Most undecided designs whose optimistic objective values are recorded."""

_FIRST = 6
"""Number of measurements at which the gap is first estimated."""

_GROWTH = 16
"""The gap is estimated again when the number of measurements has grown by 1 / ``_GROWTH``."""

_TEXT = re.compile(
    r"at most ([\d.e+-]+) % of the hypervolume is missing, with ([\d.]+) % confidence, "
    r"after (\d+) measurements: ([\d,]+) of ([\d,]+) (sampled )?designs are undecided"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGap:
    """Recorded upper bound on the share of the hypervolume that the front does not have yet.

    The bound holds with probability ``confidence`` after ``measurements`` measurements, at
    ``finished`` finished trials. Of the ``designs`` considered (all legal designs, or a sample),
    ``undecided`` may still enter the front. ``points`` are the objective values of undecided
    designs at the optimistic ends of their confidence bands, in the objectives' own units and
    signs; if there are many, an even selection. ``found`` is the share of the volume between
    reference point and ideal point that the front dominates; ``None`` with a single objective, and
    in records of earlier versions.
    """

    share: float
    confidence: float
    measurements: int
    undecided: int
    designs: int
    is_sampled: bool = False
    finished: int = 0
    points: tuple[tuple[float, ...], ...] = ()
    found: float | None = None

    @property
    def optimistic(self) -> float | None:
        """Hypervolume of the front together with the optimistic values of undecided designs.

        It is a share of the volume between reference point and ideal point, as ``found`` is, and
        above 1 if the undecided designs extend far beyond the ideal point, which has the best
        values found. ``None`` if ``found`` is not known.
        """
        if self.found is None or self.share >= 1:
            return None
        return self.found / (1.0 - self.share)

    @property
    def text(self) -> str:
        """Statement of the gap as one sentence."""
        sampled = "sampled " if self.is_sampled else ""
        return (
            f"at most {100 * self.share:.4g} % of the hypervolume is missing, "
            f"with {100 * self.confidence:.6g} % confidence, "
            f"after {self.measurements} measurements: "
            f"{self.undecided:,} of {self.designs:,} {sampled}designs are undecided"
        )

    @property
    def events(self) -> tuple[Event, Event]:
        """Events that record the gap: one with its sentence, one with the undecided designs."""
        place = {"after": self.measurements, "points": _thinned(self.points), "found": self.found}
        return (
            Event(kind=KIND, text=self.text, told=self.finished),
            Event(kind=UNDECIDED, text=json.dumps(place), told=self.finished),
        )

    @staticmethod
    def of(events: Sequence[Event]) -> RecordedGap | None:
        """Return the last gap that events record; ``None`` if there is none."""
        for event in reversed(events):
            found = _TEXT.fullmatch(event.text) if event.kind == KIND else None
            if found is None:
                continue
            share, confidence, measurements, undecided, designs, sampled = found.groups()
            points, volume = _undecided(events, int(measurements))
            try:
                return RecordedGap(
                    share=float(share) / 100,
                    confidence=float(confidence) / 100,
                    measurements=int(measurements),
                    undecided=_count(undecided),
                    designs=_count(designs),
                    is_sampled=sampled is not None,
                    finished=event.told,
                    points=points,
                    found=volume,
                )
            except ValueError:  # a stranger's file may hold anything
                continue
        return None


def checkpoints(count: int) -> list[int]:
    """Return the numbers of measurements, up to ``count``, at which the gap is estimated.

    The surrogates are refitted at these numbers. There are about 65 of them up to 300 measurements.
    """
    found, size = [], _FIRST
    while size <= count:
        found.append(size)
        size += max(1, size // _GROWTH)
    return found


def latest_gap_only(events: Iterable[Event]) -> list[Event]:
    """Return the events to show: of all recorded gaps only the last, and no undecided designs."""
    kept = [event for event in events if event.kind != UNDECIDED]
    last = next((event for event in reversed(kept) if event.kind == KIND), None)
    return [event for event in kept if event.kind != KIND or event is last]


def _undecided(
    events: Sequence[Event], measurements: int
) -> tuple[tuple[tuple[float, ...], ...], float | None]:
    """Return the content of the event of undecided designs after a number of measurements.

    Returns:
        The designs' optimistic objective values, (k, m), and the share of the hypervolume found.
    """
    for event in reversed(events):
        if event.kind != UNDECIDED:
            continue
        try:
            read = json.loads(event.text)
            if read["after"] != measurements:
                continue
            points = tuple(tuple(float(value) for value in row) for row in read["points"])
            found = None if read.get("found") is None else float(read["found"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
        values = [value for row in points for value in row]
        if not all(map(math.isfinite, values)):
            points = ()
        return points, found if found is not None and 0 <= found <= 1 else None
    return (), None


def _thinned(points: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return at most :data:`MOST_POINTS` evenly spaced points, with six significant digits."""
    step = max(1, math.ceil(len(points) / MOST_POINTS))
    return [[float(f"{value:.6g}") for value in row] for row in points[::step]]


def _count(text: str) -> int:
    return int(text.replace(",", ""))
