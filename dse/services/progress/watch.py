"""Present state of a running study: counts, the front, the hypervolume."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from dse.core.pareto import REFERENCE_TRIALS, hypervolume, is_exact, nondominated, reference
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import Trials, are
from dse.core.values import Floats, Ints

CLOUD = 16_384
"""Of the answers, so many are remembered to be drawn; of more, every second one is forgotten."""

_BLOCK = 65_536
_REST = 20
"""A hypervolume that took a second to compute is not computed again for twenty."""


class ProgressTracker:
    """Follows the trials as they finish.

    :meth:`finished` costs nothing but an entry in a list, for it is called by the loop; all else
    is done for many trials at once by whoever looks, in time that does not grow with the trials
    that were seen before. Threads may do both at once.
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
        self.cloud: Floats = np.zeros((0, 2))  # (c, 2): two losses, or when and the only one
        self.steps: Floats = np.zeros((0, 2))  # (s, 2): when the only loss fell, and how low
        self.hypervolume: float | None = None
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
        """Take a trial into account, at the next look."""
        self._news.append(trial)

    def catch_up(self, *, finally_: bool = False) -> None:
        """Learn what has finished since the last look; ``finally_`` everything, however long."""
        with self._lock:
            while self._news:
                taken = self._news[:_BLOCK]
                del self._news[: len(taken)]  # what the loop adds meanwhile stands behind them
                self._take(taken)
            if self._stale and (finally_ or self._clock() >= self._rests_until):
                self._measure()

    @property
    def since_s(self) -> float | None:
        """Seconds since the hypervolume rose; ``None`` if it has not since the watch began."""
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
        losses: Floats,  # (n, m), of answers
        ended: Ints,  # (n,), how many trials had finished with each
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
        found: Floats,  # (n, 2): when, and the loss
    ) -> None:
        """Note where the best loss fell."""
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
        """The hypervolume of the front as it is now."""
        self._stale = False
        if self._point is None:
            return
        started = self._clock()
        volume = hypervolume(self.front, self._point)
        ended = self._clock()
        self._rests_until = ended + _REST * (ended - started)
        if self.hypervolume is None or volume > self.hypervolume:
            self.rose_s = ended
        self.hypervolume = volume
        self.hypervolume_is_estimated = not is_exact(self.front, self._point)
