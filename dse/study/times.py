"""Wall-clock times at which the evaluations of a driver began and finished."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from dse.core.trial import Outcome, Trial
from dse.errors import OutageError
from dse.study.history import TrialHistory


class Times:
    """Recorder of when the evaluation of trials begins, and of both times in their outcomes.

    Args:
        ledger: the study's trials.
        kept: whether a begin time is stored immediately; otherwise it is stored with the outcome.
    """

    def __init__(self, ledger: TrialHistory, *, kept: bool) -> None:
        self._ledger = ledger
        self._kept = kept
        self._begun: dict[int, float] = {}

    def note(self, number: int, at: float) -> None:
        """Note that a trial was begun at ``at`` (seconds since the epoch); called by executors.

        An outage is not raised here, because the executor would lose the outcomes that it holds.
        """
        with suppress(OutageError):  # the driver's next call of the storage raises it
            self.note_all({number: at})

    def note_trials(self, trials: Sequence[Trial]) -> None:
        """Note that the evaluation of trials begins now.

        The begin of trials that were tried before (lost with a driver, perhaps by its crash) is
        always stored at once, so that the next loss counts only for trials that had begun.
        """
        now = time.time()
        self.note_all({trial.number: now for trial in trials})
        suspects = {trial.number: now for trial in trials if trial.attempts}
        if suspects and not self._kept:
            self._ledger.storage.begin(self._ledger.study, suspects)

    def note_all(self, begun: Mapping[int, float]) -> None:
        """Note when trials were begun, in seconds since the epoch; store it at once if ``kept``."""
        self._begun |= begun
        if begun and self._kept:
            self._ledger.storage.begin(self._ledger.study, begun)

    def stamp(self, number: int, outcome: Outcome) -> Outcome:
        """Return the outcome with its begin and end times filled in if the executor set none."""
        begun_at = self._begun.pop(number, None)
        if outcome.finished_at is not None:
            return outcome
        return replace(outcome, begun_at=outcome.begun_at or begun_at, finished_at=time.time())
