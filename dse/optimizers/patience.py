"""When so little more is to be gained that a study stops: a pure function of its record."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
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
    """What was asked in one go, as the record tells it."""

    told: int
    count: int
    pending: tuple[Design, ...]


class Patience:
    """Counts the suggestions in a row whose expected gain is below a share of the hypervolume."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._low = 0

    def look(self, optimizer: Optimizer) -> str:
        """Take the last suggestion into account; the reason to stop, empty while there is none."""
        gain: float | None = getattr(optimizer, "expected_gain", None)
        self._low = self._low + 1 if gain is not None and gain < self._share else 0
        if gain is None or self._low < PATIENCE:
            return ""
        return f"the expected gain, {100 * gain:.2g} %, {self._below}"

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
        """Tell the trials of the record, and ask again where its last suggestions were asked."""
        done = 0
        for one in last:
            tell(told[done : one.told])
            done = one.told
            optimizer.ask(one.count, one.pending)
            self.look(optimizer)
        tell(told[done:])

    @property
    def _below(self) -> str:
        return f"is below {100 * self._share:.4g} % of the hypervolume"


def suggestions(
    trials: Sequence[Trial],  # by number
    order: Sequence[Trial],  # as they were told
    skipped: Container[Design],
) -> list[Suggestion]:
    """The last suggestions of a record, but for designs that no optimizer suggested."""
    rank = {trial.number: place for place, trial in enumerate(order)}
    found: list[Suggestion] = []
    inside = [trial for trial in trials if trial.state is not State.OUTSIDE]
    own = [trial for trial in inside if trial.design not in skipped]
    starts = sorted({t.told: t.number for t in reversed(own)}.items())
    for told, number in starts[-(PATIENCE - 1) :]:
        count = sum(trial.told == told for trial in own)
        earlier = [trial for trial in inside if trial.number < number]
        pending = [t.design for t in earlier if rank.get(t.number, told) >= told]
        found.append(Suggestion(told, count, tuple(pending)))
    return found
