"""A study driven from outside: the caller asks for designs, measures them, and tells."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from threading import Lock, Thread
from typing import Any

from dse import study as engine
from dse.api.desk import Desk, Left
from dse.api.telling import Said, whole
from dse.core.trial import Outcome, State, Trial
from dse.drivers.bounds import Bounds
from dse.errors import SpecError, StudyError, nearest
from dse.protocols import Task
from dse.schema.budgets import Budget


class Asking:
    """The loop of a study in a thread of its own, which waits while nobody asks.

    Several threads may ask and tell; those who ask are served one after another.

    It is a driver as any other: what it asked is held until it is told, and given back when the
    program ends. Without a budget it goes on as long as it is asked.

    Raises:
        StudyError: the study is not what it was begun with.
    """

    def __init__(self, study: engine.Study) -> None:
        study.check_unchanged()
        self._study = study
        self._desk = Desk()
        self._asked_at: dict[int, float] = {}
        self._stored: dict[int, Trial] = {}
        self._error: BaseException | None = None
        self._turn = Lock()
        self._thread = Thread(target=self._go, name="dse-asking", daemon=True)

    @property
    def ended(self) -> bool:
        """True when nothing will be asked any more."""
        return self._thread.ident is not None and not self._thread.is_alive()

    def ask(self, count: int) -> list[Trial]:
        """Up to ``count`` designs; none when the study is done."""
        wanted = whole(count)
        if wanted is None or wanted < 1:
            raise SpecError(f"{count!r} designs cannot be asked", hint="ask(1), or more")
        with self._turn:
            return self._asked(wanted)

    def _asked(self, count: int) -> list[Trial]:
        self._desk.want(count)
        if self._thread.ident is None:
            self._thread.start()
        with self._desk.changed:
            while (tasks := self._desk.taken(count)) is None and self._thread.is_alive():
                self._desk.changed.wait(_LOOK_S)
        self._raise()
        now = time.perf_counter()
        self._asked_at |= {task.number: now for task in tasks or ()}
        return [
            Trial(number=task.number, design=task.design, state=State.RUNNING)
            for task in tasks or ()
        ]

    def tell(self, number: int, said: Said) -> Trial:
        """Hand in what came of a design; the stored trial is returned."""
        task = self._desk.tasks.get(number)
        if task is None:
            open_ = ", ".join(map(str, sorted(self._desk.tasks))) or "none"
            raise StudyError(
                f"trial {number} waits for nothing here", hint=f"waiting to be told: {open_}"
            )
        spent_s = time.perf_counter() - self._asked_at.get(number, time.perf_counter())
        self._desk.bring({number: self._outcome(task, said, spent_s)})
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
        """Say that nobody asks any more; what is not told will be given back."""
        self._desk.leave()

    def close(self) -> None:
        """End; what is not told is given back."""
        self.leave()
        if self._thread.ident is not None:
            self._thread.join()

    def _go(self) -> None:
        try:
            plan = self._study.plan
            free = plan.budget == Budget()
            self._study.run_by(
                self._desk,
                bounds=Bounds() if free else self._study.bounds(),
                on_finished=self._finished,
            )
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
        """What the caller says, with what the study's evaluators add."""
        if said.fault is not None:
            state = State.INFEASIBLE if said.fault.kind == "infeasible" else State.FAILED
            return Outcome(state=state, fault=said.fault, cost_s=spent_s, measured=1)
        values = {self._full(name): value for name, value in said.values.items()}
        spread = {self._full(name): error for name, error in said.spread.items()}
        given = {**task.given, **values}
        known = replace(task, given=given, spread={**task.spread, **spread})
        self._check_told(given)
        (outcome,) = self._study.plan.pipeline([known])
        own = bool(values.keys() - task.given.keys())
        return replace(outcome, cost_s=spent_s, measured=outcome.measured + (1 if own else 0))

    def _check_told(self, given: Mapping[str, Any]) -> None:
        """Nothing, if all that no evaluator can say here is told."""
        for bound in self._study.plan.pipeline.bound:
            lacking = bound.provides.keys() - given.keys()
            if getattr(bound.evaluator, "missing", "") and lacking:
                raise SpecError(
                    f"{min(lacking)!r} is not told",
                    hint="tell all of " + ", ".join(sorted(bound.provides)),
                )

    def _full(self, name: str) -> str:
        """The study's name of a metric that may be told by its own."""
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
