"""Incremental statistics of a running study: trial counts, the Pareto front and its hypervolume."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from dse.core.pareto import (
    REFERENCE_TRIALS,
    hypervolume,
    hypervolume_share,
    is_exact,
    nondominated,
    reference,
)
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import Trials, are
from dse.core.values import Floats, Ints

CLOUD = 16_384
"""Largest number of feasible trials kept for the plot; beyond it, every second one is dropped."""

_BLOCK = 65_536
_REST = 20
"""Pause before the hypervolume is computed again, as a multiple of its last computing time."""


class ProgressTracker:
    """Statistics of a running study, updated with each finished trial.

    The loop that runs the study calls :meth:`finished`, which only appends to a list. The display
    calls :meth:`catch_up`, which processes the new trials in blocks, in time that does not depend
    on the number of earlier trials. The two may be called from different threads.
    """

    def __init__(
        self,
        problem: Problem,
        trials: Sequence[Trial] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.problem = problem
        self.ended = 0
        self.measured = 0
        self.failed = 0
        self.infeasible = 0
        self.outside = 0
        self.cost_s = 0.0
        self.front: Floats = np.zeros((0, len(problem.objectives)))  # (k, m), minimised
        self.cloud: Floats = np.zeros((0, 2))  # (c, 2): two losses; or trial count and loss
        self.steps: Floats = np.zeros((0, 2))  # (s, 2): trial count, new best loss
        self.hypervolume: float | None = None
        self.hypervolume_share = 0.0  # of the volume between reference and ideal point
        self.hypervolume_is_estimated = False
        self.rose_s: float | None = None
        self._clock = clock
        self._lock = Lock()
        self._news: list[Trial] = []
        self._stride = 1
        self._first: list[Trial] = []
        self._point = reference(problem, []) if problem.fixed_reference is not None else None
        self._stale = False
        self._rests_until = 0.0
        for start in range(0, len(trials), _BLOCK):
            self._take(trials[start : start + _BLOCK])
        self._measure()
        self.rose_s = None

    def finished(self, trial: Trial) -> None:
        """Queue a finished trial for the next :meth:`catch_up`."""
        self._news.append(trial)

    def catch_up(self, *, finally_: bool = False) -> None:
        """Process the queued trials.

        The hypervolume is recomputed if the Pareto front has changed and, unless ``finally_`` is
        set, enough time has passed since the last computation.
        """
        with self._lock:
            while self._news:
                taken = self._news[:_BLOCK]
                del self._news[: len(taken)]  # the loop may have appended more meanwhile
                self._take(taken)
            if self._stale and (finally_ or self._clock() >= self._rests_until):
                self._measure()

    @property
    def since_s(self) -> float | None:
        """Seconds since the hypervolume last rose; ``None`` if it has not risen in this run."""
        return None if self.rose_s is None else self._clock() - self.rose_s

    def _take(self, trials: Sequence[Trial]) -> None:
        failed = are(trials, State.FAILED)
        self.failed += int(failed.sum())
        self.infeasible += int(are(trials, State.INFEASIBLE).sum())
        if isinstance(trials, Trials):
            self.measured += int(((trials.measured > 0) | failed).sum())
            self.cost_s += float(trials.cost_s.sum())
        else:
            self.measured += sum(t.measured > 0 or t.state is State.FAILED for t in trials)
            self.cost_s += sum(trial.cost_s for trial in trials)
        losses, answers = self.problem.judged(trials)
        self.outside += int(are(trials, State.DONE).sum() - answers.sum())
        places = np.flatnonzero(answers)
        if self._point is None:
            self._look_for_a_reference(trials, places)
        self._enter(losses[places], self.ended + 1 + places)
        self.ended += len(trials)

    def _look_for_a_reference(self, trials: Sequence[Trial], places: Ints) -> None:
        wanted = REFERENCE_TRIALS - len(self._first)
        self._first += [trials[place] for place in places[:wanted].tolist()]
        self._point = reference(self.problem, self._first)
        self._stale |= self._point is not None

    def _enter(
        self,
        losses: Floats,  # (n, m), of feasible trials
        ended: Ints,  # (n,), number of trials finished up to and including each
    ) -> None:
        if not len(losses):
            return
        joined = np.vstack([self.front, losses])
        kept = nondominated(joined)
        if kept[len(self.front) :].any():
            self.front = joined[kept]
            self._stale = True
        if losses.shape[1] == 1:
            losses = np.column_stack([ended, losses])
            self._step(losses)
        if losses.shape[1] > 1:
            self._remember(losses[:: self._stride, :2])

    def _step(
        self,
        found: Floats,  # (n, 2): trial count and loss
    ) -> None:
        """Append the new trials that improve the best loss to ``steps`` (single objective)."""
        joined = np.vstack([self.steps, found])
        lowest = np.minimum.accumulate(joined[:, 1])
        self.steps = joined[np.diff(lowest, prepend=np.inf) < 0]
        if len(self.steps) > CLOUD:
            self.steps = self.steps[::-2][::-1]  # the last one stays

    def _remember(self, points: Floats) -> None:
        self.cloud = np.vstack([self.cloud, points])
        while len(self.cloud) > CLOUD:
            self.cloud = self.cloud[::2]
            self._stride *= 2

    def _measure(self) -> None:
        """Recompute the hypervolume of the present Pareto front, with the time of its last rise."""
        self._stale = False
        if self._point is None:
            return
        started = self._clock()
        front = self.problem.on_scales(self.front)
        point = self.problem.on_scales(self._point)
        volume = hypervolume(front, point)
        ended = self._clock()
        self._rests_until = ended + _REST * (ended - started)
        if self.hypervolume is None or volume > self.hypervolume:
            self.rose_s = ended
        self.hypervolume = volume
        if len(self.front):
            self.hypervolume_share = hypervolume_share(volume, point, front.min(axis=0))
        self.hypervolume_is_estimated = not is_exact(front, point)
