"""Driver's view of a study's record: read in full once, and then only what is new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dse.core.design import Design
from dse.core.trial import Asked, Trial
from dse.optimizers.bayesian.gain_stopping import Suggestion
from dse.protocols import Storage


class TrialHistory:
    """The trials of a study by number, those finished in their order, and those still open."""

    def __init__(self, storage: Storage, study: str) -> None:
        self.storage = storage
        self.study = study
        self.trials: list[Trial] = []
        self.finished: list[Trial] = []
        self.open: dict[int, Trial] = {}
        self.numbers: dict[Design, list[int]] = {}

    def read(self) -> Sequence[Trial]:
        """Learn what is new; the trials finished since the last time, in their order."""
        if not self.trials:
            return self._whole()
        news = self.storage.since(self.study, len(self.finished), len(self.trials))
        self.enter(news.added)
        for trial in news.finished:
            self.trials[trial.number] = trial
            del self.open[trial.number]
        self.finished += news.finished
        return news.finished

    def enter(self, added: Iterable[Trial]) -> None:
        """Take in trials whose numbers follow."""
        for trial in added:
            self.trials.append(trial)
            self.open[trial.number] = trial
            self.numbers.setdefault(trial.design, []).append(trial.number)

    def hold(self, trials: Iterable[Trial]) -> None:
        """Note who holds open trials by now."""
        for trial in trials:
            self.open[trial.number] = trial

    def _whole(self) -> Sequence[Trial]:
        """The whole record; what is finished between the two questions is news the next time."""
        order = self.storage.finished_order(self.study)
        self.enter(self.storage.trials(self.study))
        self.finished += [self.trials[number] for number in order]
        for number in order:
            del self.open[number]
        return self.finished

    @property
    def pending(self) -> list[Design]:
        """The designs that are not finished, by number."""
        return [trial.design for trial in self.open.values()]


@dataclass(frozen=True, slots=True)
class Moment:
    """State of the record when an ask was made.

    ``news`` are the finished trials that it knew and the ask before did not; ``pending`` all
    designs that had a number and were not finished, as far as it knew.
    """

    ask: Asked
    news: Sequence[Trial]
    pending: tuple[Design, ...]


def moments(
    asks: Iterable[Asked], trials: Sequence[Trial], finished: Sequence[Trial]
) -> Iterator[Moment]:
    """A record, ask by ask.

    Args:
        asks: in the order of their numbers; what each knew, the next one knows too.
        trials: by number.
        finished: in their order.
    """
    waiting: dict[int, Design] = {}
    seen = told = 0
    for ask in asks:
        waiting |= {trial.number: trial.design for trial in trials[seen : ask.first]}
        news = finished[told : ask.told]
        seen, told = ask.first, max(told, ask.told)
        for trial in news:
            waiting.pop(trial.number, None)
        yield Moment(ask, news, tuple(waiting.values()))


def last_suggestions(ledger: TrialHistory, by: str, most: int) -> list[Suggestion]:
    """Return the last suggestions of an optimizer in the record, oldest first."""
    asks = [ask for ask in ledger.storage.asks(ledger.study) if ask.by == by]
    return [
        Suggestion(one.ask.told, one.ask.wanted or one.ask.count, one.pending)
        for one in moments(asks[-most:], ledger.trials, ledger.finished)
    ]
