"""Finished trials of a study as columns of losses and costs, and the growth of its front."""

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
"""Unit in which the budget is counted: ``seconds`` of evaluation, ``cost`` in dollars."""

SWEPT = "swept"
"""Kind of the event that records the budget with which a study of a sweep has ended."""

SHARES = (0.1, 0.25, 0.5, 1.0)
"""Shares of the total spent at which the front is evaluated."""


def is_swept(events: Iterable[Event]) -> bool:
    """Return whether the events show that the study is part of a sweep (optimizers, seeds)."""
    return any(event.kind == SWEPT for event in events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Finished trials of a study as columns (losses, measurements, costs), without designs."""

    name: str
    problem: Problem
    losses: Floats  # (n, m), minimised; NaN where a trial is infeasible
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
        """Return the columns of a study for comparison, computed from its trials.

        Args:
            name: name of the study.
            problem: the study's problem.
            trials: in the order in which they finished; unfinished ones are ignored.
            price_per_s: dollars per second of evaluation, if the study states a price.
            swept: whether the study is one of a sweep.
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
        """Return the cumulative amount spent at the end of each trial, (n,).

        The currency is measurements, trials, seconds or dollars.
        """
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
        """Return the total amount that the run spent in the given currency."""
        spent = self.spent(currency)
        return float(spent[-1]) if len(spent) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontHistory:
    """Growth of a run's front, as the trials that entered it, in order of finishing.

    Such a trial is a newcomer: a trial that no earlier trial dominates or equals.
    """

    run: Run
    rows: Ints  # (k,), rows of the newcomers among the run's trials
    losses: Floats  # (k, m), minimised

    @staticmethod
    def of(run: Run) -> FrontHistory:
        """Build the history of a run's front from the run."""
        answers = np.flatnonzero(np.isfinite(run.losses).all(axis=1))
        rows = answers[newcomers(run.losses[answers])]
        return FrontHistory(run=run, rows=rows, losses=run.losses[rows])

    @property
    def final(self) -> Floats:
        """Losses of the final front, (f, m)."""
        return self.front(len(self.rows))

    def front(self, arrived: int) -> Floats:
        """Return the losses of the front after ``arrived`` trials had entered it, (f, m)."""
        known = self.losses[:arrived]
        return np.asarray(known[nondominated(known)])

    def arrived(
        self,
        currency: Currency,
        budgets: Floats,  # (g,)
    ) -> Ints:
        """Return how many trials had entered the front at each of g spent budgets, (g,)."""
        finished = np.searchsorted(self.run.spent(currency), budgets, side="right")
        return np.asarray(np.searchsorted(self.rows, finished, side="left"))


def currencies(runs: Iterable[Run]) -> tuple[Currency, ...]:
    """Return the budget currencies in which all these runs can be compared.

    The first is ``measurements`` if any run made a measurement, otherwise ``trials``; ``cost`` is
    included if all runs have a price.
    """
    held = list(runs)
    counted: Currency = "measurements" if any(run.measured.any() for run in held) else "trials"
    priced = bool(held) and all(run.price_per_s is not None for run in held)
    return (counted, "seconds", "cost") if priced else (counted, "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Front of a study after a given amount of its budget was spent.

    ``spent`` is the amount, in ``currency``, and ``share`` the fraction of the total spent.
    """

    currency: Currency
    spent: float
    share: float
    losses: Floats  # (f, m), minimised, the front


def stages(run: Run) -> list[Stage]:
    """Return the distinct fronts after each of :data:`SHARES` of the study's total was spent.

    The total counts measurements, or trials if nothing was measured. A front that did not change
    between stages is listed once, at the smallest amount spent.
    """
    (currency, *_), course = currencies([run]), FrontHistory.of(run)
    budgets = np.ceil(np.array(SHARES) * run.total(currency))
    found: dict[int, Stage] = {}
    for share, spent, arrived in zip(
        SHARES, budgets.tolist(), course.arrived(currency, budgets).tolist(), strict=True
    ):
        if arrived and arrived not in found:
            found[arrived] = Stage(
                currency=currency, spent=spent, share=share, losses=course.front(arrived)
            )
    return list(found.values())
