"""When the evaluations of a driver were begun and finished, by the wall clock."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from dse.core.trial import Outcome
from dse.drivers.ledger import Ledger
from dse.errors import OutageError


class Times:
    """Notes when trials begin, and stamps their outcomes.

    Args:
        ledger: of the study.
        kept: the storage keeps at once when a trial is begun; else its end tells.
    """

    def __init__(self, ledger: Ledger, *, kept: bool) -> None:
        self._ledger = ledger
        self._kept = kept
        self._begun: dict[int, float] = {}

    def note(self, number: int, at: float) -> None:
        """Note that a trial was begun, from within an executor: it holds outcomes."""
        with suppress(OutageError):  # the next call tells
            self.note_all({number: at})

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
