"""Stopping by the gap: a study ends once little of the hypervolume can be missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dse.core.problem import Problem
from dse.core.recorded_gap import RecordedGap, checkpoints
from dse.core.trial import Event, State, Trial
from dse.core.trials import are

if TYPE_CHECKING:
    from dse.optimizers.bayesian.hypervolume_gap import GapEstimator, HypervolumeGap


@dataclass(kw_only=True)
class GapMonitor:
    """Stopping rule by the hypervolume gap, the share of the hypervolume that may be missing.

    The gap is estimated at certain numbers of measurements only. Between two estimates the number
    of measurements grows by a sixteenth, so that the estimates cost little. The rule decides from
    recorded estimates, so that a resumed study decides as an uninterrupted one.

    Args:
        problem: the problem.
        share: largest gap at which the study stops, as a share of the hypervolume.
        confidence: probability with which the gap is an upper bound.
        completes: whether the front is completed by designs without measurements after the run.
        on_estimate: called with each estimate, and with an estimate restored from the record.
    """

    problem: Problem
    share: float
    confidence: float
    completes: bool = False
    on_estimate: Callable[[RecordedGap], None] = lambda _: None
    last: RecordedGap | None = field(default=None, init=False)
    _tried: int = field(default=0, init=False)

    @cached_property
    def _estimator(self) -> GapEstimator:
        from dse.optimizers.bayesian.hypervolume_gap import GapEstimator  # imports SciPy

        return GapEstimator(self.problem, confidence=self.confidence, completes=self.completes)

    def recall(self, events: Sequence[Event], trials: Sequence[Trial]) -> str:
        """Restore the last recorded estimate; return the reason if it ended the study.

        Args:
            events: the study's recorded events.
            trials: all its trials.
        """
        found = RecordedGap.of(events)
        if found is not None and found.confidence == round(self.confidence, 8):
            self.last, self._tried = found, found.measurements
            self.on_estimate(found)
        return self._ended(trials)

    def _ended(self, trials: Sequence[Trial]) -> str:
        """Return the reason if the last estimate ended the study and nothing was measured since.

        Otherwise the string is empty.
        """
        if self.last is None or not all(trial.state.finished for trial in trials):
            return ""
        done = sum(trial.measured > 0 or trial.state is State.FAILED for trial in trials)
        return self._reason() if self._counted(trials, done) <= self.last.measurements else ""

    def look(self, finished: Sequence[Trial], measured: int) -> tuple[list[Event], str]:
        """Estimate the hypervolume gap if enough was measured since the last estimate.

        Args:
            finished: all finished trials.
            measured: number of them that cost a measurement.

        Returns:
            The events to record, and the reason to stop; '' if the study continues.
        """
        count = self._counted(finished, measured)
        if not any(self._tried < step <= count for step in checkpoints(count)):
            return [], self._reason()
        self._tried = count
        found = self._estimator.estimate(finished)
        if found is None:
            return [], ""
        self.last = recorded_gap(self.problem, found, measurements=count, finished=len(finished))
        self.on_estimate(self.last)
        return list(self.last.events), self._reason()

    def _counted(self, trials: Sequence[Trial], measured: int) -> int:
        """Return the number of measurements or, without measured metrics, of finished trials."""
        if self.problem.measured:
            return measured
        return int(np.count_nonzero(~are(trials, State.PENDING) & ~are(trials, State.RUNNING)))

    def _reason(self) -> str:
        if self.last is None or self.last.share > self.share:
            return ""
        return (
            f"the gap, {100 * self.last.share:.2g} %, is within {100 * self.share:.4g} % of the "
            f"hypervolume, with {100 * self.confidence:.6g} % confidence"
        )


def recorded_gap(
    problem: Problem, found: HypervolumeGap, *, measurements: int, finished: int
) -> RecordedGap:
    """Return a hypervolume gap for the record, with values in the objectives' units and signs.

    Args:
        problem: the problem.
        found: the estimated gap.
        measurements: number of measurements so far.
        finished: number of finished trials so far.
    """
    signs = np.array([objective.sign for objective in problem.objectives])
    order = np.lexsort(found.undecided.T[::-1])
    return RecordedGap(
        share=float(f"{found.share:.6g}"),
        confidence=round(found.confidence, 8),
        measurements=measurements,
        undecided=len(found.undecided),
        designs=found.designs,
        is_sampled=not found.is_listed,
        finished=finished,
        points=tuple(map(tuple, (found.undecided[order] * signs).tolist())),
        found=None if found.found is None else float(f"{found.found:.6g}"),
    )
