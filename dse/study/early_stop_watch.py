"""Early stopping in a driver, decided from recorded intermediate metrics of trials alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dse.core.problem import Problem
from dse.core.trial import Event, Report, State, Trial
from dse.errors import OutageError
from dse.evaluation.early_stopping import Certain, Halving, Rule, decide, rungs, runs
from dse.study.history import TrialHistory

KIND = "stopped"
"""Kind of the event that records why a trial was stopped."""


@dataclass(frozen=True, kw_only=True)
class EarlyStopMonitor:
    """Receiver of intermediate metrics (reports) of running trials, which decides which to stop."""

    history: TrialHistory
    problem: Problem
    rule: Rule | None
    worker: int | None = None
    """The driver's number in the study."""
    _heard: list[Report] = field(default_factory=list, init=False)
    """Reports of the study read so far, in the order of the record."""

    def __call__(self, number: int, step: int, metrics: Mapping[str, float]) -> bool:
        """Record a report and return whether its trial should stop.

        While the storage is unavailable, reports are dropped and every trial continues: an
        exception would be raised in the executor and lose the outcomes that it holds.

        Args:
            number: the trial's number.
            step: the training step or epoch of the report.
            metrics: the reported metrics.
        """
        try:
            return self._decide(number, step, metrics)
        except OutageError:
            return False

    def _decide(self, number: int, step: int, metrics: Mapping[str, float]) -> bool:
        storage, study = self.history.storage, self.history.study
        attempt = self.history.trials[number].attempts
        if number in self.history.open:
            attempt = self.history.open[number].attempts
        report = Report(
            number=number, attempt=attempt, step=step, metrics=metrics, worker=self.worker
        )
        storage.report(study, [report])
        if self.rule is None:
            return False
        self._heard.extend(storage.reports(study, since=len(self._heard)))
        if report not in self._heard:  # the trial was considered lost and reissued elsewhere
            return False
        reports = _up_to(self._heard, report)
        known = self.history.trials
        added = storage.since(study, len(self.history.finished), len(known)).added
        designs = [one.design for one in (*known, *added)]
        finished = self.history.finished
        reason = decide(self.rule, self.problem, designs, reports, finished)
        if reason:
            text = f"trial {number}: {reason}"
            storage.record(study, [Event(kind=KIND, text=text, told=len(finished))])
        return bool(reason)


def contradiction(
    rule: Rule,
    problem: Problem,
    trials: Sequence[Trial],
    reports: Sequence[Report],
    *,
    finished: Sequence[Trial] = (),
    events: Sequence[Event] = (),
) -> tuple[int, str] | None:
    """Return the first trial that was stopped or continued against the early-stopping rule.

    The reason is returned, too. The result is ``None`` if all reports agree with the rule. Under
    successive halving every report is a decision: a trial has to be stopped exactly where the rule
    stops it. Under the rule that stops a trial once it is certain to be dominated, a stop is
    checked against the finished trials that were known according to its event. Whether a trial
    ended correctly is decided by the last run of the driver that stored its outcome. Records of
    older versions do not name that driver: there, at least one run of the trial has to be
    consistent with how it ended.

    Args:
        rule: the early-stopping rule.
        problem: the study's problem.
        trials: all trials, by number.
        reports: all reports, in the order of the record.
        finished: the finished trials, in order of finishing.
        events: the study's events.
    """
    designs = [trial.design for trial in trials]
    if isinstance(rule, Certain):
        return _uncertain(rule, problem, trials, reports, finished, events)
    of_report = [(one.number, run) for one, run in zip(reports, runs(reports), strict=True)]
    last = {one: place for place, one in enumerate(of_report)}
    judged = _judged_runs(trials, reports, last)
    due: dict[tuple[int, int], int] = {}
    for place in _decisive(rule, trials, reports, of_report, judged):
        if decide(rule, problem, designs, reports[: place + 1]):
            due.setdefault(of_report[place], place)
    for trial in trials:
        ends = [
            (due.get((trial.number, run)), last[trial.number, run]) for run in judged[trial.number]
        ]
        found = [_refute(trial, *one) for one in ends] or [_refute(trial, None, None)]
        if all(found):
            return trial.number, found[-1]
    return None


def _judged_runs(
    trials: Sequence[Trial], reports: Sequence[Report], last: Mapping[tuple[int, int], int]
) -> dict[int, list[int]]:
    """Return, by trial number, the evaluation runs that may have produced the trial's outcome.

    At least one of these runs has to be consistent with the outcome: stopped or not.

    Args:
        trials: all trials.
        reports: all reports, in the order of the record.
        last: index of the last report by (trial number, run number), in order of runs.
    """
    of_trial: dict[int, list[tuple[int, int | None]]] = defaultdict(list)
    for (number, run), place in last.items():
        of_trial[number].append((run, reports[place].worker))
    found = {}
    for trial in trials:
        of_all = [run for run, _ in of_trial[trial.number]]
        drivers = {driver for _, driver in of_trial[trial.number]}
        if trial.worker is not None and None not in drivers:
            of_all = [run for run, driver in of_trial[trial.number] if driver == trial.worker]
        one = not trial.attempts or None not in drivers  # a driver that leaves adds no attempt
        found[trial.number] = of_all[-1:] if one else of_all
    return found


def _refute(trial: Trial, due: int | None, last: int | None) -> str:
    """Return why a run of a trial contradicts its outcome (stopped or not); empty if it does not.

    Args:
        trial: the trial.
        due: index of the report at which the rule stops the run; ``None`` if at no report.
        last: index of the run's last report.
    """
    stopped = trial.state is State.STOPPED
    if stopped and due is None:
        return "it was stopped, and had to go on"
    if stopped and due != last:
        return "it was stopped, and not where it had to be"
    if not stopped and due is not None and trial.failure is None:
        return "it went on, and had to be stopped"
    return ""


def _decisive(
    rule: Halving,
    trials: Sequence[Trial],
    reports: Sequence[Report],
    of_report: Sequence[tuple[int, int]],
    judged: Mapping[int, Sequence[int]],
) -> Iterator[int]:
    """Yield the indices of the reports with which a trial reached a rung of successive halving.

    Only finished trials count and, of their evaluation runs, only the runs in ``judged``.
    """
    before: dict[int, list[Report]] = defaultdict(list)
    for place, (number, run) in enumerate(of_report):
        before[number].append(reports[place])
        counts = trials[number].state.finished and run in judged[number]
        if counts and rungs(rule, before[number]):
            yield place


def _uncertain(
    rule: Certain,
    problem: Problem,
    trials: Sequence[Trial],
    reports: Sequence[Report],
    finished: Sequence[Trial],
    events: Sequence[Event],
) -> tuple[int, str] | None:
    by_trial: dict[int, list[Report]] = defaultdict(list)
    for report in reports:
        by_trial[report.number].append(report)
    for event in events:
        if event.kind == KIND:
            number = int(event.text.removeprefix("trial ").partition(":")[0])
            known = finished[: event.told]
            judged = by_trial[number] if trials[number].attempts else by_trial[number][-1:]
            designs = {number: trials[number].design}
            if not any(decide(rule, problem, designs, [one], known) for one in judged):
                return number, "it was stopped, and was not certain to be dominated"
    return None


def _up_to(reports: Sequence[Report], own: Report) -> Sequence[Report]:
    """Return the reports up to and including the last one that equals ``own``."""
    place = next(place for place in reversed(range(len(reports))) if reports[place] == own)
    return reports[: place + 1]
