"""Driver's cache of a study's record: read in full once, then updated incrementally."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dse.core.design import Design
from dse.core.preference_answers import answers_at, read_steering
from dse.core.trial import Asked, Trial
from dse.optimizers.bayesian.gain_stopping import Suggestion
from dse.protocols import Storage
from dse.study.thinking import effort_at, effort_changes


class TrialHistory:
    """Trials of a study: all by number, finished trials by time of finishing, unfinished trials."""

    def __init__(self, storage: Storage, study: str) -> None:
        self.storage = storage
        self.study = study
        self.trials: list[Trial] = []
        self.finished: list[Trial] = []
        self.open: dict[int, Trial] = {}
        self.numbers: dict[Design, list[int]] = {}

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of finished trials, and of all trials, that this process has read."""
        return len(self.finished), len(self.trials)

    def read(self) -> Sequence[Trial]:
        """Read new trials and outcomes; return the newly finished trials, in order."""
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
        """Append new trials, whose numbers follow those already known."""
        for trial in added:
            self.trials.append(trial)
            self.open[trial.number] = trial
            self.numbers.setdefault(trial.design, []).append(trial.number)

    def hold(self, trials: Iterable[Trial]) -> None:
        """Replace unfinished trials by newer versions, which name the processes that run them."""
        for trial in trials:
            self.open[trial.number] = trial

    def _whole(self) -> Sequence[Trial]:
        """Read the complete record; return the finished trials.

        A trial that finishes between the two storage calls is returned by the next read.
        """
        order = self.storage.finished_order(self.study)
        self.enter(self.storage.trials(self.study))
        self.finished += [self.trials[number] for number in order]
        for number in order:
            del self.open[number]
        return self.finished

    @property
    def pending(self) -> list[Design]:
        """Designs of the unfinished trials, in order of trial number."""
        return [trial.design for trial in self.open.values()]


@dataclass(frozen=True, slots=True)
class Moment:
    """State of a study's record at a request to the optimizer for designs.

    ``news`` are the finished trials that were known at this request but not at the previous one;
    ``pending`` are the designs of the trials that were unfinished as far as the requesting process
    knew.
    """

    ask: Asked
    news: Sequence[Trial]
    pending: tuple[Design, ...]


def moments(
    asks: Iterable[Asked], trials: Sequence[Trial], finished: Sequence[Trial]
) -> Iterator[Moment]:
    """Yield the state of a study's record at each request for designs (ask).

    Args:
        asks: recorded asks in order of their first trial numbers; at each ask, at least the
            trials known at the previous ask were known.
        trials: all trials, by number.
        finished: the finished trials, in order of finishing.
    """
    waiting: dict[int, Design] = {}
    seen = known = 0
    for ask in asks:
        waiting |= {trial.number: trial.design for trial in trials[seen : ask.first]}
        news = finished[known : ask.told]
        seen, known = ask.first, max(known, ask.told)
        for trial in news:
            waiting.pop(trial.number, None)
        yield Moment(ask, news, tuple(waiting.values()))


def last_suggestions(history: TrialHistory, by: str, most: int) -> list[Suggestion]:
    """Return the last suggestions of an optimizer in the record, oldest first.

    Args:
        history: the study's trials.
        by: the optimizer's name in the record.
        most: maximum number of suggestions.
    """
    asks = [ask for ask in history.storage.asks(history.study) if ask.by == by]
    events = history.storage.events(history.study)
    changes, steering = effort_changes(events), read_steering(events)
    return [
        Suggestion(
            finished=one.ask.told,
            count=one.ask.wanted or one.ask.count,
            pending=one.pending,
            effort=effort_at(changes, one.ask.first),
            preferences=answers_at(steering, one.ask.first),
        )
        for one in moments(asks[-most:], history.trials, history.finished)
    ]


class TrialFidelities:
    """Fidelity level of each trial: the number of earlier trials with the same design.

    Args:
        history: the process's copy of the study's trials.
        stages: the lowest level at which each evaluator runs, by its label; empty if the study has
            only one fidelity.
        whole: designs that are evaluated in full the first time, such as baselines.
    """

    def __init__(
        self, history: TrialHistory, stages: Mapping[str, int], *, whole: Collection[Design]
    ) -> None:
        self.highest = max(stages.values(), default=0)
        self._history = history
        self._stages = stages
        self._whole = frozenset(whole)

    def labels(self, trial: Trial) -> frozenset[str] | None:
        """Return the labels of the evaluators that run at the trial's fidelity; ``None``: all."""
        if not self._stages or trial.design in self._whole:
            return None
        rung = self._history.numbers[trial.design].index(trial.number)
        if rung >= self.highest:
            return None
        return frozenset(label for label, stage in self._stages.items() if stage <= rung)
