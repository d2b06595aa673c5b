"""One study as columns: what each finished trial yielded and cost, in the order they finished."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dse.core.pareto import newcomers, nondominated
from dse.core.problem import Problem
from dse.core.trial import Event, Trial
from dse.core.trials import Trials
from dse.core.values import Floats, Ints

Currency = Literal["measurements", "trials", "seconds", "cost"]
"""What is spent: ``seconds`` are those that evaluators worked, ``cost`` is in dollars."""


SWEPT = "swept"
"""The kind of the event that tells with which bounds a study of a sweep has ended."""


def is_swept(events: Iterable[Event]) -> bool:
    """Return True if these are events of a study that has ended in a sweep."""
    return any(event.kind == SWEPT for event in events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A study's finished trials; a million of them take a few dozen bytes each."""

    name: str
    problem: Problem
    losses: Floats  # (n, m), minimised; NaN where a trial is no answer
    measured: Ints  # (n,), 1 for each trial that is a measurement
    cost_s: Floats  # (n,)
    price_per_s: float | None = None
    swept: bool = False

    @staticmethod
    def of(
        name: str,
        problem: Problem,
        trials: Sequence[Trial],
        price_per_s: float | None = None,
        *,
        swept: bool = False,
    ) -> Run:
        """The run of these trials, in the order in which they were finished.

        Args:
            name: the study's.
            problem: its question.
            trials: unfinished ones are passed over.
            price_per_s: dollars for each second of evaluation, where the study states them.
            swept: the study is one of a sweep.
        """
        held = trials if isinstance(trials, Trials) else Trials.of(trials)
        finished = held.take(held.over)
        losses, answers = problem.judged(finished)
        return Run(
            name=name,
            problem=problem,
            losses=np.where(answers[:, None], losses, np.nan),
            measured=problem.measurements(finished).astype(np.int64),
            cost_s=finished.cost_s,
            price_per_s=price_per_s,
            swept=swept,
        )

    def spent(self, currency: Currency) -> Floats:
        """All that was spent by the end of each trial, (n,), never falling."""
        return np.asarray(np.cumsum(self._each(currency)))

    def _each(self, currency: Currency) -> Floats:
        match currency:
            case "measurements":
                return self.measured.astype(np.float64)
            case "trials":
                return np.ones(len(self.measured))
            case "seconds":
                return self.cost_s
            case "cost":
                return self.cost_s * (self.price_per_s or 0.0)

    def total(self, currency: Currency) -> float:
        """Return the total that was spent."""
        spent = self.spent(currency)
        return float(spent[-1]) if len(spent) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontHistory:
    """Growth of a run's front: only the trials that no earlier one was as good as."""

    run: Run
    rows: Ints  # (k,), their places among the run's trials
    losses: Floats  # (k, m), minimised

    @staticmethod
    def of(run: Run) -> FrontHistory:
        """The course of a run."""
        answers = np.flatnonzero(np.isfinite(run.losses).all(axis=1))
        rows = answers[newcomers(run.losses[answers])]
        return FrontHistory(run=run, rows=rows, losses=run.losses[rows])

    @property
    def final(self) -> Floats:
        """The front at the end, (f, m)."""
        return self.front(len(self.rows))

    def front(self, arrived: int) -> Floats:
        """The front of the first so many newcomers, (f, m)."""
        known = self.losses[:arrived]
        return np.asarray(known[nondominated(known)])

    def arrived(
        self,
        currency: Currency,
        budgets: Floats,  # (g,)
    ) -> Ints:
        """Return the number of newcomers when each budget was spent, (g,)."""
        finished = np.searchsorted(self.run.spent(currency), budgets, side="right")
        return np.asarray(np.searchsorted(self.rows, finished, side="left"))


def currencies(runs: Iterable[Run]) -> tuple[Currency, ...]:
    """Return the currencies that these runs have in common; cost if all have a price.

    Measurements are left out where none were made, and trials where some were.
    """
    held = list(runs)
    counted: Currency = "measurements" if any(run.measured.any() for run in held) else "trials"
    priced = bool(held) and all(run.price_per_s is not None for run in held)
    return (counted, "seconds", "cost") if priced else (counted, "seconds")
