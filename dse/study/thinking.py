"""Control of an optimizer's effort, so that a suggestion costs a share of a measurement at most.

The cost of a suggestion is measured by a clock, so each change of the effort is an event of the
study's record. Resuming and replaying a study read these events and do not measure costs anew.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from dse.core.trial import Event, Trial
from dse.protocols import AdjustsEffort
from dse.report.words import seconds_text

KIND = "thinking"
"""Kind of the event that reports a change of the effort."""

_WORDS = re.compile(r"from trial (\d+): effort (\d+), designs per ask: (\d+)")
_BATCHES = (2, 4, 8, 16)
"""Designs per ask that follow the cheapest effort, as one fit of a model serves all of them."""

_ASKS = 4
"""Latest requests from which the cost of a suggestion is estimated."""
_TRIALS = 16
"""Latest trials from which the cost of a measurement is estimated."""
_FAR = 4.0
"""Factor above the bound from which levels in between are skipped, as each costs a fit to try."""
_SPARE = 4.0
"""Factor by which a suggestion must be below its bound before more effort is spent."""


@dataclass(frozen=True, slots=True, order=True)
class EffortChange:
    """Recorded change of the optimizer's effort, from trial number ``first`` on."""

    first: int
    effort: int
    batch: int

    @property
    def words(self) -> str:
        """First words of the event of an effort change, by which the event is recognised."""
        return f"from trial {self.first}: effort {self.effort}, designs per ask: {self.batch}"


def effort_changes(events: Iterable[Event]) -> list[EffortChange]:
    """Return the recorded changes of the optimizer's effort, by trial number."""
    found = (_WORDS.match(event.text) for event in events if event.kind == KIND)
    return sorted(EffortChange(*map(int, one.groups())) for one in found if one)


def effort_at(changes: Sequence[EffortChange], first: int) -> int:
    """Return the optimizer's effort at the request whose first trial has the number ``first``."""
    return next((one.effort for one in reversed(changes) if one.first <= first), 0)


@dataclass(kw_only=True)
class ThinkingControl:
    """Controller of the optimizer's effort, by measured costs of suggestions and measurements.

    The levels are the optimizer's efforts, then its cheapest effort with several designs per
    request. The level is lowered when a suggestion costs more than ``share`` of a measurement, and
    raised when it costs far less.

    Args:
        optimizer: the optimizer, whose attribute ``effort`` is set.
        share: greatest cost of a suggestion, as a share of the median cost of a measurement.
    """

    optimizer: AdjustsEffort
    share: float
    _level: int = field(default=0, init=False)
    _costs: dict[int, deque[tuple[float, int]]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=_ASKS)), init=False
    )
    _warm: bool = field(default=False, init=False)

    @property
    def batch(self) -> int:
        """Least number of designs per request, even if the executor has room for fewer."""
        return (1, *_BATCHES)[max(0, self._level - self._last_effort)]

    def resume(self, changes: Sequence[EffortChange]) -> None:
        """Continue at the effort level of the last recorded change.

        Args:
            changes: the changes in the study's record, by trial number.
        """
        if changes:
            extra = _BATCHES.index(changes[-1].batch) + 1 if changes[-1].batch > 1 else 0
            self._level = min(changes[-1].effort, self._last_effort) + extra

    def choose(
        self, after: int, finished: Sequence[Trial], changes: Sequence[EffortChange]
    ) -> list[Event]:
        """Set the optimizer's effort for the next request; return the event of a change, if any.

        Args:
            after: number of the first trial of the request.
            finished: all finished trials known to the optimizer.
            changes: the changes in the study's record, by trial number.
        """
        self.resume(changes)
        before = self._level
        cost_s = measurement_cost_s(finished)
        if cost_s is not None:
            self._level = self._next_level(self.share * cost_s)
        self.optimizer.effort = min(self._level, self._last_effort)
        if self._level == before or cost_s is None:
            return []
        change = EffortChange(after, self.optimizer.effort, self.batch)
        took = self._price_s(before)
        levels: Sequence[str] = getattr(self.optimizer, "effort_words", ())
        what = f"{levels[change.effort]}; " if change.effort < len(levels) else ""
        text = (
            f"{change.words} ({what}a suggestion took {_time(took)}; "
            f"{100 * self.share:g} % of a measurement is {_time(self.share * cost_s)})"
        )
        return [Event(kind=KIND, text=text, told=len(finished))]

    def note(self, seconds: float, count: int) -> None:
        """Record the duration of a request for designs, except the first, which includes imports.

        Args:
            seconds: elapsed time of the request.
            count: number of designs that it returned.
        """
        if self._warm and count:
            self._costs[self._level].append((seconds, count))
        self._warm = True

    @property
    def _last_effort(self) -> int:
        return self.optimizer.efforts - 1

    def _next_level(self, allowed_s: float) -> int:
        """Return the level whose suggestions cost at most ``allowed_s`` each."""
        costs = self._costs[self._level]
        designs = sum(count for _, count in costs)
        spent_s = sum(seconds for seconds, _ in costs)
        if spent_s > _FAR * allowed_s * max(designs, _ASKS):
            return max(self._last_effort, self._cheaper_level)
        if spent_s > allowed_s * max(designs, _ASKS):
            return self._cheaper_level
        spare = len(costs) == _ASKS and _SPARE * spent_s <= allowed_s * designs
        if spare and self._level and self._price_s(self._level - 1) <= allowed_s:
            return self._level - 1
        return self._level

    @property
    def _cheaper_level(self) -> int:
        return min(self._level + 1, self._last_effort + len(_BATCHES))

    def _price_s(self, level: int) -> float:
        """Return the mean seconds per design at a level; 0 if not measured."""
        costs = self._costs[level]
        designs = sum(count for _, count in costs)
        return sum(seconds for seconds, _ in costs) / designs if designs else 0.0


def measurement_cost_s(finished: Sequence[Trial]) -> float | None:
    """Return the median cost in seconds of the latest trials with a cost; ``None`` without any."""
    costs = [trial.cost_s for trial in finished[-_TRIALS:] if trial.cost_s > 0]
    return median(costs) if costs else None


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else seconds_text(seconds)
