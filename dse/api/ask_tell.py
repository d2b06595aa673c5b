"""Study driven by the caller, who asks for designs, measures them and reports results."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from threading import Lock, Thread, get_ident
from threading import enumerate as enumerate_threads
from typing import Any
from weakref import WeakSet

from dse.api.ask_tell_executor import Desk, Left, Part
from dse.api.tell import Said, whole
from dse.core.design import key_of
from dse.core.trial import Outcome, State, Trial
from dse.errors import SpecError, StudyError, nearest
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import Task
from dse.schema.study.budget import Budget
from dse.storage.trust import check_trust
from dse.study import study as engine
from dse.study.budget import Bounds


class Asking:
    """Loop of a study in a thread of its own, which waits while no design is requested.

    Several threads may ask and tell; those who ask are served one after another.

    It is a driver as any other: what it asked is held until it is told, and given back when the
    program ends. Without a budget it goes on as long as it is asked. ``reason`` is why the study
    ended; it is empty while the study goes on, and where asking was merely closed.

    Raises:
        StudyError: the study is not what it was begun with, or not trusted.
    """

    def __init__(self, study: engine.StudyEngine) -> None:
        study.check_unchanged()
        check_trust(study.storage, study.name)
        self.reason = ""
        self._study = study
        self._desk = Desk(self._answer, self._parts)
        self._asked_at: dict[int, float] = {}
        self._asked_by: dict[int, int] = {}
        self._stored: dict[int, Trial] = {}
        self._error: BaseException | None = None
        self._turn = Lock()
        self._thread = Thread(target=self._go, name="dse-asking", daemon=True)
        _ASKING.add(self)

    @property
    def ended(self) -> bool:
        """True when nothing will be asked any more."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def ask(self, count: int, *, wait: bool = False) -> list[Trial]:
        """Return one to ``count`` designs; none when the study has ended.

        While nothing can be asked, wait for the trials of other threads and programs.

        Args:
            count: how many designs at most.
            wait: wait also where this thread was given trials that are not reported yet.

        Raises:
            SpecError: ``count`` is no whole number from 1 on.
            StudyError: nothing can be asked before this thread reports its trials, or asking was
                closed.
        """
        wanted = whole(count)
        if wanted is None or wanted < 1:
            hint = "a whole number of them: ask(1), or more"
            raise SpecError(f"{count!r} designs cannot be asked", hint=hint)
        while not self._turn.acquire(timeout=_LOOK_S):
            self._check_reports(wait)
        try:
            self._desk.want(wanted)
            tasks = self._await_tasks(wanted, wait=wait)
        finally:
            self._desk.want(0)
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
            with self._desk.changed:
                tasks = self._desk.take(count)
                for task in tasks:
                    self._asked_at[task.number] = time.perf_counter()
                    self._asked_by[task.number] = get_ident()
                if not tasks and not self._desk.exhausted:
                    self._desk.changed.wait(_LOOK_S)
                    continue
            if tasks:
                return tasks
            self._check_reports(wait)
            with self._desk.changed:
                self._desk.changed.wait(_LOOK_S)
        self._raise()
        if not self.reason:
            raise StudyError(
                f"the study {self._study.name!r} was closed while a design was asked",
                hint="ask again: what was not reported is asked first",
            )
        return []

    def _check_reports(self, wait: bool) -> None:  # noqa: FBT001 - what the caller was given
        """Check that asking needs no report from this thread, or that it may wait.

        Raises:
            StudyError: only trials that this thread was given can, and it waits here.
        """
        if wait or not self._desk.exhausted:
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
        """Return the trials of the study ``asked`` that only the present thread can report.

        They were asked by it, or by a thread that has ended.
        """
        if self.ended or self._study.name != asked._study.name:
            return []
        others = {thread.ident for thread in enumerate_threads()} - {get_ident()}
        tasks, waiting = self._desk.tasks.copy(), self._desk.waiting.copy()
        held = sorted(
            n for n in tasks if n not in waiting and self._asked_by.get(n, -1) not in others
        )
        if asked is self or not held:
            return held
        trials = asked._study.trials  # of the same name, perhaps in another storage
        there = [n for n in held if n < len(trials) and n not in asked._desk.tasks]
        return [
            number
            for number in there
            if not trials[number].state.finished and trials[number].design == tasks[number].design
        ]

    def tell(self, number: int, said: Said) -> Trial:
        """Hand in what came of a design; the stored trial is returned."""
        task = self._desk.tasks.get(number)
        if task is None:
            open_ = ", ".join(map(str, sorted(self._desk.tasks))) or "none"
            raise StudyError(
                f"trial {number} waits for nothing here: it was told already, or never asked",
                hint=f"waiting to be told: {open_}",
            )
        spent_s = time.perf_counter() - self._asked_at.get(number, time.perf_counter())
        outcome = self._outcome(task, said, spent_s)
        self._desk.bring({number: outcome})
        self._desk.release(partial(self._inform, task, outcome))
        with self._desk.changed:
            while number not in self._stored and self._thread.is_alive():
                self._desk.changed.wait(_LOOK_S)
        self._raise()
        stored = self._stored.pop(number, None)
        if stored is None:
            raise StudyError(
                f"what was told of trial {number} was not kept: asking ended, or another told it",
                hint="study.trials shows how it stands; a trial that was given back is asked again",
            )
        return stored

    def leave(self) -> None:
        """Stop requesting designs; those not reported will be given back."""
        self._desk.leave()

    def close(self) -> None:
        """End the loop and join its thread; designs not reported are given back."""
        self.leave()
        if self._thread.ident is not None:
            self._thread.join()

    def _go(self) -> None:
        try:
            plan = self._study.plan
            free = plan.budget == Budget()
            reason = self._study.run_by(
                self._desk,
                bounds=Bounds() if free else self._study.bounds(),
                on_finished=self._finished,
            )
            self.reason = "" if self._desk.ended else reason
        except Left:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised where the caller stands
            self._error = error
        finally:
            with self._desk.changed:
                self._desk.changed.notify_all()

    def _finished(self, trial: Trial) -> None:
        if trial.number in self._asked_at:
            with self._desk.changed:
                self._stored[trial.number] = trial
                self._desk.changed.notify_all()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _outcome(self, task: Task, said: Said, spent_s: float) -> Outcome:
        """Return the reported result, completed by what the study's evaluators add."""
        if said.fault is not None:
            state = State.INFEASIBLE if said.fault.kind == "infeasible" else State.FAILED
            return Outcome(state=state, fault=said.fault, cost_s=spent_s, measured=1)
        values = {self._full(name): value for name, value in said.values.items()}
        spread = {self._full(name): error for name, error in said.spread.items()}
        given = {**task.given, **values}
        known = replace(task, given=given, spread={**task.spread, **spread})
        self._check_complete(given)
        (outcome,) = self._study.plan.pipeline([known])
        own = bool(values.keys() - task.given.keys())
        return replace(outcome, cost_s=spent_s, measured=outcome.measured + (1 if own else 0))

    def _answer(self, task: Task) -> Outcome | None:
        """Return the outcome of a task with no metric left to report; else ``None``.

        Such a task has the metrics that the caller reported of other trials.
        """
        known = all(bound.provides.keys() <= task.given.keys() for bound in self._told_by_hand)
        if not known:
            return None
        (outcome,) = self._study.plan.pipeline([task])
        return outcome

    @property
    def _told_by_hand(self) -> list[Bound]:
        """Evaluators whose metrics the caller reports."""
        bounds = self._study.plan.pipeline.bound
        return [bound for bound in bounds if getattr(bound.evaluator, "missing", "")]

    def _parts(self, task: Task) -> frozenset[Part]:
        """Return which evaluators' metrics a task still lacks, and what those read.

        These are the metrics that the caller reports.
        """
        return frozenset(
            (bound.label, self._read_by(bound, task))
            for bound in self._told_by_hand
            if not bound.provides.keys() <= task.given.keys()
        )

    def _read_by(self, bound: Bound, task: Task) -> str:
        reads = frozenset[str]().union(*map(self._study.problem.reads, bound.provides))
        return key_of({name: value for name, value in task.design.items() if name in reads})

    def _inform(self, told: Task, outcome: Outcome, other: Task) -> Task:
        """Return the other task with the reported metrics whose evaluators read the same.

        It is returned unchanged where the outcome is not done.
        """
        if outcome.state is not State.DONE:
            return other
        shared = [
            name
            for bound in self._told_by_hand
            if self._read_by(bound, told) == self._read_by(bound, other)
            for name in bound.provides
        ]
        given = {name: outcome.metrics[name] for name in shared if name in outcome.metrics}
        spread = {name: outcome.spread[name] for name in shared if name in outcome.spread}
        return replace(other, given={**given, **other.given}, spread={**spread, **other.spread})

    def _check_complete(self, given: Mapping[str, Any]) -> None:
        """Raise SpecError unless all metrics that the caller must report are given."""
        for bound in self._told_by_hand:
            lacking = bound.provides.keys() - given.keys()
            if lacking:
                raise SpecError(
                    f"{min(lacking)!r} is not told",
                    hint="tell all of " + ", ".join(sorted(bound.provides)),
                )

    def _full(self, name: str) -> str:
        """Return the study's name of a metric that may be given by its own name.

        Raise SpecError where there is no such metric, or several.
        """
        known = self._study.problem.metrics
        found = [one for one in known if one == name] or [
            f"{bound.name}.{own}"
            for bound in self._study.plan.pipeline.bound
            for own in bound.evaluator.provides
            if own == name
        ]
        if len(found) != 1:
            raise SpecError(f"there is no metric {name!r}", hint=nearest(name, known))
        return found[0]


_LOOK_S = 0.1
"""How often to look whether the loop still lives."""

_REPORT = (
    "study.tell({}, ...) each of them, or close() gives them back; "
    "ask(..., wait=True) waits for threads that report them"
)

_ASKING: WeakSet[Asking] = WeakSet()
"""All that ask in this program: a thread that waited for itself would wait for ever."""
