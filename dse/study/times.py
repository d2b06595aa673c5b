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
    """Notes when trials begin, and stamps their outcomes.

    Args:
        ledger: of the study.
        kept: the storage keeps at once when a trial is begun; else its end tells.
    """

    def __init__(self, ledger: TrialHistory, *, kept: bool) -> None:
        self._ledger = ledger
        self._kept = kept
        self._begun: dict[int, float] = {}

    def note(self, number: int, at: float) -> None:
        """Note that a trial was begun, from within an executor: it holds outcomes."""
        with suppress(OutageError):  # the next call tells
            self.note_all({number: at})

    def note_trials(self, trials: Sequence[Trial]) -> None:
        """Note that trials begin now.

        Those that took a driver with them, or were evaluated beside one that did, are kept at once:
        the next loss is to count for those alone that were begun.
        """
        now = time.time()
        self.note_all({trial.number: now for trial in trials})
        suspects = {trial.number: now for trial in trials if trial.attempts}
        if suspects and not self._kept:
            self._ledger.storage.begin(self._ledger.study, suspects)

    def note_all(self, begun: Mapping[int, float]) -> None:
        """Note when trials were begun: what is free to evaluate again is noted at its end only."""
        self._begun |= begun
        if begun and self._kept:
            self._ledger.storage.begin(self._ledger.study, begun)

    def stamp(self, number: int, outcome: Outcome) -> Outcome:
        """Return the outcome with its times, where the executor has not set them."""
        begun_at = self._begun.pop(number, None)
        if outcome.finished_at is not None:
            return outcome
        return replace(outcome, begun_at=outcome.begun_at or begun_at, finished_at=time.time())
