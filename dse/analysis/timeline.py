"""Timeline of evaluations (Gantt chart): per driver, one lane for each concurrent evaluation.

A driver is a process that runs the study.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.trial import Trial
from dse.core.trials import Trials
from dse.core.values import Floats, Ints

PAUSE_S = 600.0
"""Seconds without any asked, started or finished trial that count as a pause of the study."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Timeline of a study's evaluations over its working time: wall-clock time without pauses.

    ``lanes`` lists (driver, index), where a driver is a process that runs the study and the index
    distinguishes its concurrent evaluations. The arrays have one entry per evaluation; times are in
    seconds of working time since the first event: ``asked`` is when the optimizer proposed the
    trial, ``start`` and ``end`` when it ran. A running evaluation ends at the last known event.
    ``pauses`` are the times at which a pause was cut out.
    """

    lanes: Sequence[tuple[int, int]]
    trial: Ints  # (n,), trial numbers
    state: Ints  # (n,), indices into STATES
    lane: Ints  # (n,), indices into lanes
    asked: Floats  # (n,)
    start: Floats  # (n,)
    end: Floats  # (n,)
    finished: int
    span_s: float
    pauses: Floats

    @property
    def busy(self) -> float:
        """Mean fraction of the lanes that are evaluating over the working time, from 0 to 1."""
        whole = self.span_s * len(self.lanes)
        return float((self.end - self.start).sum()) / whole if whole else 0.0

    @property
    def per_hour(self) -> float:
        """Finished trials per hour of working time."""
        return self.finished / self.span_s * 3600 if self.span_s else 0.0


def timeline(trials: Sequence[Trial]) -> Timeline | None:
    """Return the timeline of the trials; ``None`` if no trial has a start and an end time.

    Args:
        trials: in any order; trials recorded by older versions have no times, and are left out.
    """
    known = Trials.of(trials)
    known = known.take(np.isfinite(known.begun_at))
    if not np.isfinite(known.finished_at).any():
        return None
    known = known.take(np.lexsort((known.number, known.begun_at)))
    moments = np.concatenate([known.asked_at, known.begun_at, known.finished_at])
    at_work = _AtWork(np.unique(moments[np.isfinite(moments)]), known.begun_at, known.finished_at)
    start = at_work.place(known.begun_at)
    end = np.where(np.isnan(known.finished_at), at_work.span_s, at_work.place(known.finished_at))
    end = np.maximum(start, end)  # the clock may have been set back
    asked = np.fmin(start, at_work.place(known.asked_at))
    lanes, lane = _assign_lanes(known.worker, start, end)
    return Timeline(
        lanes=lanes,
        trial=known.number,
        state=known.state.astype(np.int64),
        lane=lane,
        asked=asked,
        start=start,
        end=end,
        finished=int(np.isfinite(known.finished_at).sum()),
        span_s=at_work.span_s,
        pauses=at_work.pauses,
    )


class _AtWork:
    """Conversion of wall-clock times to working time, without gaps in which nothing ran.

    Args:
        moments: all distinct event times, ascending.
        begun: start times of the evaluations, ascending.
        ended: their end times; NaN if still running.
    """

    def __init__(self, moments: Floats, begun: Floats, ended: Floats) -> None:
        gaps = np.diff(moments)
        ends = np.sort(ended[np.isfinite(ended)])
        before = [np.searchsorted(times, moments[:-1], side="right") for times in (begun, ends)]
        alone = (before[0] <= before[1]) & (gaps > PAUSE_S)
        cut = np.where(alone, gaps, 0.0)
        self._moments = moments
        self._seconds = np.append(0.0, np.cumsum(gaps - cut))
        self.span_s = float(self._seconds[-1])
        self.pauses: Floats = self._seconds[:-1][cut > 0]

    def place(self, at: Floats) -> Floats:
        """Convert wall-clock times to seconds of working time since the first event; keep NaN."""
        rows = np.searchsorted(self._moments, at).clip(max=len(self._moments) - 1)
        return np.where(np.isnan(at), np.nan, self._seconds[rows])


def _assign_lanes(driver: Ints, start: Floats, end: Floats) -> tuple[list[tuple[int, int]], Ints]:
    """Assign each evaluation to a free lane of its driver, adding a lane if none is free.

    Return the lanes, as pairs (driver, index), and the lane number of each evaluation.

    Source:
        Kleinberg, Tardos: Algorithm Design, 2006, section 4.1.
    """
    busy: dict[int, list[tuple[float, int]]] = {}  # by driver: (end time, lane index)
    free: dict[int, list[int]] = {}
    taken: list[tuple[int, int]] = []
    for who, begins, ends in zip(driver.tolist(), start.tolist(), end.tolist(), strict=True):
        running, idle = busy.setdefault(who, []), free.setdefault(who, [])
        while running and running[0][0] <= begins:
            heapq.heappush(idle, heapq.heappop(running)[1])
        place = heapq.heappop(idle) if idle else len(running)
        heapq.heappush(running, (ends, place))
        taken.append((who, place))
    lanes = sorted(set(taken))
    index = {lane: row for row, lane in enumerate(lanes)}
    return lanes, np.array([index[one] for one in taken], dtype=np.int64)
