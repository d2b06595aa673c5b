"""Early stopping on a low expected gain, as a pure function of the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dse.core.design import Design
from dse.core.trial import Event, State, Trial
from dse.protocols import Optimizer

PATIENCE = 3
"""So many suggestions in a row have to expect too little: one odd model ends no study."""

KIND = "gain"
"""The kind of the event that says so."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One request for designs, as the record holds it."""

    told: int
    count: int
    pending: tuple[Design, ...]


class Patience:
    """Counts the suggestions in a row whose expected gain is below a share of the hypervolume."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._low = self._next = 0

    def look(self, optimizer: Optimizer) -> str:
        """The reason to stop after the last suggestion; empty while there is none."""
        gain: float | None = getattr(optimizer, "expected_gain", None)
        self._next = self._low + 1 if gain is not None and gain < self._share else 0
        if gain is None or self._next < PATIENCE:
            return ""
        return f"the expected gain, {100 * gain:.2g} %, {self._below}"

    def keep(self) -> None:
        """Count the suggestion that was looked at last: it is in the record."""
        self._low = self._next

    def ended(self, events: Sequence[Event], trials: Sequence[Trial]) -> str:
        """The reason for which the study stopped before, if nothing was measured since."""
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
        told: Sequence[Trial],
        last: Sequence[Suggestion],
    ) -> None:
        """Give the optimizer the recorded trials and repeat its last requests at their places."""
        done = 0
        for one in last:
            tell(told[done : one.told])
            done = one.told
            optimizer.ask(one.count, one.pending)
            self.look(optimizer)
            self.keep()
        tell(told[done:])

    @property
    def _below(self) -> str:
        return f"is below {100 * self._share:.4g} % of the hypervolume"
