"""Limits of a study's budget and rules on its progress, at which its drivers stop asking."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dse.core.recorded_gap import REACHED
from dse.optimizers.auto import whole as searched_whole
from dse.optimizers.bayesian.gain_stopping import KIND, PATIENCE, Patience
from dse.schema.study.budget import Budget
from dse.schema.study.plan import Plan
from dse.schema.study.plugin_checks import AUTO, optimizer_traits
from dse.study.asking import InformedOptimizer
from dse.study.gap_stopping import GapMonitor
from dse.study.history import last_suggestions

ENOUGH = 1 << 30
"""Number larger than any ask: no bound."""


@dataclass(frozen=True, slots=True)
class RemainingBudget:
    """Number of further trials that a budget allows, and the exhausted limit if it is 0.

    Unfinished trials with numbers below ``until`` may still leave some of the budget unused.
    ``affordable`` is the number of trials that the cost limit allows in advance for other
    processes, at the mean cost of the finished trials.
    """

    count: int
    reason: str = ""
    until: int = 0
    affordable: int = ENOUGH


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits at which a study stops asking for designs; ``None`` means unlimited.

    All processes that run the study count together. ``time_s`` is in seconds: of evaluation before
    the run began, plus the elapsed time of the run.

    ``cost`` is in dollars, at ``price_per_s`` dollars per second of evaluation;
    ``min_improvement`` is the least expected hypervolume improvement of a suggested design, as a
    fraction of the present hypervolume. ``gap`` is the largest share of the hypervolume that may be
    missing, with probability ``confidence``.
    """

    measurements: int | None = None
    trials: int | None = None
    time_s: float | None = None
    cost: float | None = None
    price_per_s: float | None = None
    min_improvement: float | None = None
    gap: float | None = None
    confidence: float | None = None

    def is_late(self, elapsed_s: float) -> bool:
        """Return whether the time limit is used up after ``elapsed_s`` seconds."""
        return self.time_s is not None and elapsed_s >= self.time_s

    def room(
        self, *, asked: int, measured: int, under_way: int, spent_s: float, finished: int = 0
    ) -> RemainingBudget:
        """Return how many more trials the limits allow.

        Args:
            asked: number of trials of the study.
            measured: number of finished trials that cost a measurement.
            under_way: number of unfinished trials, each of which may cost a measurement.
            spent_s: seconds of evaluation so far.
            finished: number of finished trials.
        """
        room = RemainingBudget(ENOUGH)
        if self.trials is not None:
            room = RemainingBudget(
                self.trials - asked, f"{self.trials} trials are done", self.trials
            )
        if self.measurements is not None:
            unused = self.measurements - measured - under_way
            if unused < room.count:
                until = asked if measured < self.measurements else 0
                room = RemainingBudget(unused, f"{self.measurements} measurements are done", until)
        if self.cost is not None and spent_s * (self.price_per_s or 0.0) >= self.cost:
            room = RemainingBudget(0, f"{self.cost:g} $ are spent")
        if self.cost is not None and self.price_per_s:
            each_s = spent_s / finished if finished else 0.0
            left_s = self.cost / self.price_per_s - spent_s
            affordable = int(left_s / each_s) - under_way if each_s > 0.0 else 0
            room = replace(room, affordable=max(0, affordable))
        return room


def bounds_of(plan: Plan, budget: Budget, added: int) -> Bounds:
    """Return the limits of a budget, with defaults so that every study ends.

    Without any limit, a study with measured metrics stops after 100 measurements, and one with
    computed metrics only after 20,000 trials. An exhaustive or factorial study needs no default: it
    ends when all its designs are done, and where nothing is measured a limit on measurements has no
    effect. In a measured study with a limit on measurements only, trials are limited to 20 per
    measurement, because some trials need no measurement.

    Args:
        plan: the study's plan.
        budget: the budget.
        added: number of trials that count for no budget: carried over or attached.
    """
    measurements, trials = budget.measurements, budget.trials
    measured = bool(plan.problem.measured)
    whole = optimizer_traits(plan.optimizer, plan.objects).exhaustive or (
        plan.optimizer.use == AUTO and searched_whole(plan.problem)
    )
    free = (measurements, trials, budget.time_s, budget.cost) == (None, None, None, None)
    if free and not whole:
        measurements, trials = (100, None) if measured else (None, 20_000)
    if measurements is not None and trials is None and not (whole and not measured):
        trials = 20 * measurements if measured else measurements
    if trials is not None:
        trials += added
    return Bounds(
        measurements=measurements if measured else None,
        trials=trials,
        time_s=budget.time_s,
        cost=budget.cost,
        price_per_s=budget.price_per_s,
        min_improvement=budget.min_improvement,
        gap=budget.gap,
        confidence=budget.confidence,
    )


class StoppingRules:
    """Stopping rules that depend on the progress of a study: its gap, and the expected gain.

    Args:
        min_improvement: the least expected hypervolume improvement as a fraction, if limited.
        gap: the stopping rule by the gap, if the budget has one.
        suggester: the optimizer, with the driver's copy of the trials.
    """

    def __init__(
        self, min_improvement: float | None, gap: GapMonitor | None, suggester: InformedOptimizer
    ) -> None:
        self._gap = gap
        self._least = min_improvement
        self._suggester = suggester
        self._patience: Patience | None = None

    def recall(self, by: str) -> str:
        """Restore the stopping rules from the record; return the reason if one ended the study.

        Args:
            by: the optimizer's name in the record.
        """
        history = self._suggester.history
        events = history.storage.events(history.study)
        ended = "" if self._gap is None else self._gap.recall(events, history.trials)
        if ended or self._least is None:
            return ended
        self._patience = Patience(self._least)
        ended = self._patience.ended(events, history.trials)
        if ended:
            return ended
        last = last_suggestions(history, by, PATIENCE - 1)
        optimizer, teach = self._suggester.optimizer, self._suggester.teach
        self._patience.recall(optimizer, teach, history.finished, last)
        return ""

    def judge(self, measured: int) -> tuple[str, str]:
        """Return the stopping rule that ends the study now, as an event's kind, and the reason.

        Args:
            measured: number of finished trials that cost a measurement.
        """
        if self._gap is not None:
            events, reason = self._gap.look(self._suggester.history.finished, measured)
            self._suggester.note(*events)
            if reason:
                return REACHED, reason
        reason = self._patience.look(self._suggester.optimizer) if self._patience else ""
        return KIND, reason

    def keep(self) -> None:
        """Store the number of consecutive low gains, once the judged suggestion is recorded."""
        if self._patience is not None:
            self._patience.keep()
