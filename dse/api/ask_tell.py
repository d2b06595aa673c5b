"""Driver of a study whose caller requests designs, measures them and reports the results."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from threading import Lock, Thread, get_ident
from threading import enumerate as enumerate_threads
from typing import Any
from weakref import WeakSet

from dse.api.ask_tell_executor import AskTellExecutor, Left, MeasurementKey
from dse.api.tell import ReportedResult, full_metric_name, whole
from dse.core.design import key_of
from dse.core.trial import Outcome, State, Trial
from dse.errors import SpecError, StudyError
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import Task, missing_reason
from dse.schema.study.budget import Budget
from dse.storage.trust import check_trust
from dse.study import study_engine as engine
from dse.study.stopping_bounds import Bounds


class Asking:
    """Background thread that runs a study whose designs the calling program measures.

    Several threads may request designs and report results; requests are served one at a time. Like
    every process that runs a study, it reserves its running trials until their results are
    reported, or until the program ends and they become pending again. Without a budget it continues
    as long as designs are requested. ``reason`` is why the study ended; it is empty while the study
    runs, and after a mere :meth:`close`.

    Raises:
        StudyError: the study differs from its stored definition, or is not trusted.
    """

    def __init__(self, study: engine.StudyEngine) -> None:
        study.check_unchanged()
        check_trust(study.storage, study.name)
        self.reason = ""
        self._study = study
        self._executor = AskTellExecutor(self._answer, self._parts)
        self._asked_at: dict[int, float] = {}
        self._asked_by: dict[int, int] = {}
        self._stored: dict[int, Trial] = {}
        self._error: BaseException | None = None
        self._turn = Lock()
        self._thread = Thread(target=self._go, name="dse-asking", daemon=True)
        _ASKING.add(self)

    @property
    def ended(self) -> bool:
        """Whether the loop has ended, so that no more designs are suggested."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def ask(self, count: int, *, wait: bool = False) -> list[Trial]:
        """Return one to ``count`` designs to measure; none when the study has ended.

        The designs are stored as running trials. While no design can be suggested, wait for the
        trials of other threads and programs.

        Args:
            count: the maximum number of designs.
            wait: wait even if this thread has unreported trials.

        Raises:
            SpecError: ``count`` is not an integer of at least 1.
            StudyError: no design can be suggested before this thread reports its trials, or the
                driver was closed.
        """
        wanted = whole(count)
        if wanted is None or wanted < 1:
            hint = "give an integer of at least 1: ask(1)"
            raise SpecError(f"{count!r} designs cannot be asked", hint=hint)
        while not self._turn.acquire(timeout=_LOOK_S):
            self._check_reports(wait)
        try:
            self._executor.want(wanted)
            tasks = self._await_tasks(wanted, wait=wait)
        finally:
            self._executor.want(0)
            self._turn.release()
        return [
            Trial(
                number=task.number,
                design=task.design,
                state=State.RUNNING,
                metrics=task.given,
                spread=task.spread,
            )
            for task in tasks
        ]

    def _await_tasks(self, count: int, *, wait: bool) -> list[Task]:
        if self._thread.ident is None:
            self._thread.start()
        while self._thread.is_alive():
            with self._executor.changed:
                tasks = self._executor.take(count)
                for task in tasks:
                    self._asked_at[task.number] = time.perf_counter()
                    self._asked_by[task.number] = get_ident()
                if not tasks and not self._executor.exhausted:
                    self._executor.changed.wait(_LOOK_S)
                    continue
            if tasks:
                return tasks
            self._check_reports(wait)
            with self._executor.changed:
                self._executor.changed.wait(_LOOK_S)
        self._raise()
        if not self.reason:
            raise StudyError(
                f"the study {self._study.name!r} was closed while a design was asked",
                hint="ask again: unreported designs are returned first",
            )
        return []

    def _check_reports(self, wait: bool) -> None:  # noqa: FBT001 - what the caller was given
        """Raise StudyError if waiting for designs would block this thread forever.

        Raises:
            StudyError: only reports of this thread's own trials would allow a new design.
        """
        if wait or not self._executor.exhausted:
            return
        for asking in [self, *(one for one in list(_ASKING) if one is not self)]:
            numbers = asking.list_unreported(self)
            if numbers:
                of = "" if asking is self else ", which another Study object asked"
                s = "s" if len(numbers) > 1 else ""
                raise StudyError(
                    "no design can be suggested before earlier ones are reported: "
                    f"trial{s} {', '.join(map(str, numbers))}{of}",
                    hint=_REPORT.format(numbers[0]),
                )

    def list_unreported(self, asked: Asking) -> list[int]:
        """Return the unreported trials that only the current thread can report.

        The current thread requested these trials, or the thread that requested them has ended. No
        new design can be suggested before they are reported.
        """
        if self.ended or self._study.name != asked._study.name:
            return []
        others = {thread.ident for thread in enumerate_threads()} - {get_ident()}
        tasks, waiting = self._executor.tasks.copy(), self._executor.waiting.copy()
        held = sorted(
            n for n in tasks if n not in waiting and self._asked_by.get(n, -1) not in others
        )
        if asked is self or not held:
            return held
        trials = asked._study.trials  # of the same name, perhaps in another storage
        there = [n for n in held if n < len(trials) and n not in asked._executor.tasks]
        return [
            number
            for number in there
            if not trials[number].state.finished and trials[number].design == tasks[number].design
        ]

    def tell(self, number: int, reported: ReportedResult) -> Trial:
        """Report the result of a trial; return the trial as stored."""
        task = self._executor.tasks.get(number)
        if task is None:
            open_ = ", ".join(map(str, sorted(self._executor.tasks))) or "none"
            raise StudyError(
                f"trial {number} waits for no result: it was reported already, or never asked",
                hint=f"trials that wait for a result: {open_}",
            )
        spent_s = time.perf_counter() - self._asked_at.get(number, time.perf_counter())
        outcome = self._outcome(task, reported, spent_s)
        self._executor.bring({number: outcome})
        self._executor.release(partial(self._inform, task, outcome))
        with self._executor.changed:
            while number not in self._stored and self._thread.is_alive():
                self._executor.changed.wait(_LOOK_S)
        self._raise()
        stored = self._stored.pop(number, None)
        if stored is None:
            raise StudyError(
                f"the result of trial {number} was not stored: the study was closed, or another "
                "driver reported the trial first",
                hint="see its state in study.trials; a trial that was given back is asked again",
            )
        return stored

    def leave(self) -> None:
        """Stop requesting designs; trials without a reported result become pending again."""
        self._executor.leave()

    def close(self) -> None:
        """End the loop and join its thread; unreported trials become pending again."""
        self.leave()
        if self._thread.ident is not None:
            self._thread.join()

    def _go(self) -> None:
        try:
            plan = self._study.plan
            free = plan.budget == Budget()
            reason = self._study.run_by(
                self._executor,
                bounds=Bounds() if free else self._study.bounds(),
                on_finished=self._store_finished,
            )
            self.reason = "" if self._executor.ended else reason
        except Left:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self._error = error
        finally:
            with self._executor.changed:
                self._executor.changed.notify_all()

    def _store_finished(self, trial: Trial) -> None:
        if trial.number in self._asked_at:
            with self._executor.changed:
                self._stored[trial.number] = trial
                self._executor.changed.notify_all()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _outcome(self, task: Task, reported: ReportedResult, spent_s: float) -> Outcome:
        """Return a trial's outcome: reported metrics and those that evaluators then compute."""
        if reported.failure is not None:
            state = State.INFEASIBLE if reported.failure.kind == "infeasible" else State.FAILED
            return Outcome(state=state, failure=reported.failure, cost_s=spent_s, measured=1)
        study = self._study
        values = {full_metric_name(study, name): value for name, value in reported.values.items()}
        spread = {full_metric_name(study, name): error for name, error in reported.spread.items()}
        given = {**task.given, **values}
        known = replace(task, given=given, spread={**task.spread, **spread})
        self._check_complete(given)
        (outcome,) = self._study.plan.pipeline([known])
        own = bool(values.keys() - task.given.keys())
        return replace(outcome, cost_s=spent_s, measured=outcome.measured + (1 if own else 0))

    def _answer(self, task: Task) -> Outcome | None:
        """Return the outcome of a trial without unreported metrics; ``None`` if any is missing.

        The metrics may be known because another trial with the same evaluator inputs was reported.
        """
        known = all(
            bound.provides.keys() <= task.given.keys() for bound in self._reported_evaluators
        )
        if not known:
            return None
        (outcome,) = self._study.plan.pipeline([task])
        return outcome

    @property
    def _reported_evaluators(self) -> list[Bound]:
        """Evaluators without a function here: the caller measures and reports their metrics."""
        bounds = self._study.plan.pipeline.bound
        return [bound for bound in bounds if missing_reason(bound.evaluator)]

    def _parts(self, task: Task) -> frozenset[MeasurementKey]:
        """Return the (evaluator, inputs) pairs of a trial for which no metrics are reported yet."""
        return frozenset(
            (bound.label, self._read_by(bound, task))
            for bound in self._reported_evaluators
            if not bound.provides.keys() <= task.given.keys()
        )

    def _read_by(self, bound: Bound, task: Task) -> str:
        reads = frozenset[str]().union(*map(self._study.problem.reads, bound.provides))
        return key_of({name: value for name, value in task.design.items() if name in reads})

    def _inform(self, finished: Task, outcome: Outcome, other: Task) -> Task:
        """Copy a trial's reported metrics into another trial whose evaluator has the same inputs.

        The other trial is returned unchanged unless the outcome is ``DONE``.
        """
        if outcome.state is not State.DONE:
            return other
        shared = [
            name
            for bound in self._reported_evaluators
            if self._read_by(bound, finished) == self._read_by(bound, other)
            for name in bound.provides
        ]
        given = {name: outcome.metrics[name] for name in shared if name in outcome.metrics}
        spread = {name: outcome.spread[name] for name in shared if name in outcome.spread}
        return replace(other, given={**given, **other.given}, spread={**spread, **other.spread})

    def _check_complete(self, given: Mapping[str, Any]) -> None:
        """Raise SpecError unless ``given`` has all metrics that the caller must report."""
        for bound in self._reported_evaluators:
            lacking = bound.provides.keys() - given.keys()
            if lacking:
                raise SpecError(
                    f"{min(lacking)!r} is not reported",
                    hint="report all of " + ", ".join(sorted(bound.provides)),
                )


_LOOK_S = 0.1
"""Interval at which waiting threads check that the loop is still alive, in seconds."""

_REPORT = (
    "study.tell({}, ...) each of them, or close() gives them back; "
    "ask(..., wait=True) waits for threads that report them"
)

_ASKING: WeakSet[Asking] = WeakSet()
"""Instances in this process, checked so that a thread never waits for its own report."""
