"""Early stopping on a low expected gain, decided from the stored trials and requests alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dse.core.design import Design
from dse.core.preference_answers import PreferenceAnswer
from dse.core.trial import Event, State, Trial
from dse.protocols import AdjustsEffort, ExpectsImprovement, Optimizer, SeeksFavourite

PATIENCE = 3
"""Consecutive low expected gains that stop a study, so that one unusual model does not."""

KIND = "gain"
"""Kind of the event that reports the stop."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Recorded call of the optimizer's ``ask`` method."""

    finished: int
    count: int
    pending: tuple[Design, ...]
    effort: int = 0
    preferences: tuple[PreferenceAnswer, ...] = ()


class Patience:
    """Stopping rule: several suggestions in a row with an expected gain below a threshold.

    The gain and the threshold are fractions of the hypervolume.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._low = self._next = 0

    def look(self, optimizer: Optimizer) -> str:
        """Inspect the expected gain of the last suggestion; return the reason to stop, or ''."""
        gain = optimizer.expected_gain if isinstance(optimizer, ExpectsImprovement) else None
        self._next = self._low + 1 if gain is not None and gain < self._share else 0
        if gain is None or self._next < PATIENCE:
            return ""
        return f"the expected gain, {100 * gain:.2g} %, {self._below}"

    def keep(self) -> None:
        """Store the number of consecutive low gains, once the last suggestion is recorded."""
        self._low = self._next

    def ended(self, events: Sequence[Event], trials: Sequence[Trial]) -> str:
        """Return the recorded reason if the rule of low gains ended the study, else ''.

        It is also empty if a measurement was made after the study ended.
        """
        reasons = [e for e in events if e.kind == KIND and e.text.endswith(self._below)]
        if not reasons or not all(trial.state.finished for trial in trials):
            return ""
        since = [trial for trial in trials if trial.told >= reasons[-1].told]
        dear = any(trial.measured or trial.state is State.FAILED for trial in since)
        return "" if dear else reasons[-1].text

    def recall(
        self,
        optimizer: Optimizer,
        tell: Callable[[Sequence[Trial]], None],
        finished: Sequence[Trial],
        last: Sequence[Suggestion],
    ) -> None:
        """Restore the number of consecutive low gains, by replaying recorded suggestions."""
        done = 0
        for one in last:
            tell(finished[done : one.finished])
            done = one.finished
            if isinstance(optimizer, AdjustsEffort):
                optimizer.effort = one.effort
            if isinstance(optimizer, SeeksFavourite):
                optimizer.preferences = one.preferences
            optimizer.ask(one.count, one.pending)
            self.look(optimizer)
            self.keep()
        tell(finished[done:])

    @property
    def _below(self) -> str:
        return f"is below {100 * self._share:.4g} % of the hypervolume"
