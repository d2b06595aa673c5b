"""Measurement of a study's front on the test split, after the search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from dse.core.judged_trials import JudgedTrial, claim_event, read_claims, read_judged
from dse.core.pareto import ParetoSet
from dse.core.trial import State, Trial
from dse.errors import StudyError
from dse.evaluation.held_out import HeldOutPipeline, has_test_split
from dse.evaluation.pipeline import Pipeline
from dse.protocols import Executor, Storage
from dse.schema.study.plan import Plan
from dse.study.claimed_trials import Lease
from dse.system.swallowed_interrupts import raise_lost_interrupt


@dataclass(kw_only=True)
class FrontJudge:
    """Measurement of the front of a study on the test split of its evaluators.

    Each result is recorded as soon as it is measured. Optimizers never receive the results. The
    processes (drivers) of one study divide the trials among themselves: before a process measures a
    trial, it records a reservation, and the first reservation of a live process counts. So no trial
    is measured twice.

    Args:
        plan: the study's plan.
        storage: the storage of the study's record.
        name: the study's name in the storage.
        make_executor: makes the executor that runs a pipeline.
        is_stopped: returns whether to begin no further measurement.
        on_judged: called with (done, total) after each result.
        lease: lease of the process that measures; with ``None``, no reservations are recorded, as
            if there were no other processes.
    """

    plan: Plan
    storage: Storage
    name: str
    make_executor: Callable[[Pipeline], Executor]
    is_stopped: Callable[[], bool] = lambda: False
    on_judged: Callable[[int, int], None] = lambda *_: None
    lease: Lease | None = None
    _held_out: HeldOutPipeline = field(init=False)

    def missing(self, *, again: bool = False, failed: bool = False) -> list[Trial]:
        """Return the trials of the front that are to be measured on the test split.

        Args:
            again: include trials that have a result.
            failed: include trials whose measurement on the test split failed.
        """
        finished = self.storage.trials(self.name).finished
        front = ParetoSet.of(self.plan.problem, finished).trials
        known = {} if again else read_judged(self.storage.events(self.name))
        done = {number for number, one in known.items() if not (failed and one.failure)}
        return [t for t in front if t.state is State.DONE and t.number not in done]

    def measure(self, trials: Sequence[Trial]) -> list[JudgedTrial]:
        """Measure trials on the test split of the evaluators, and record each result.

        Args:
            trials: the trials.

        Raises:
            StudyError: no evaluator of the study has a test split.
        """
        check_test_split(self.plan)
        if not trials:
            return []
        self._held_out = HeldOutPipeline(self.plan.pipeline, self.plan.problem.asked)
        with closing(self.make_executor(self._held_out.pipeline)) as executor:
            return self._measure(executor, trials)

    def _measure(self, executor: Executor, trials: Sequence[Trial]) -> list[JudgedTrial]:
        finished = len(self.storage.trials(self.name).finished)
        by_number = {trial.number: trial for trial in trials}
        waiting, flying, found = list(trials), set[int](), list[JudgedTrial]()
        while waiting or flying:
            raise_lost_interrupt()
            if self.is_stopped():
                waiting.clear()
            room = 0 if executor.barrier and flying else executor.capacity - len(flying)
            while waiting and room > 0:
                trial = waiting.pop(0)
                if self._claim(trial.number, finished):
                    room -= 1
                    flying.add(trial.number)
                    executor.submit(self._held_out.task(trial))
            outcomes = executor.collect(None) if flying else {}
            flying -= outcomes.keys()
            new = [self._held_out.read(by_number[n], one) for n, one in outcomes.items()]
            self.storage.record(self.name, [one.event(finished) for one in new])
            found += new
            self.on_judged(len(found), len(trials))
        return found

    def _claim(self, number: int, finished: int) -> bool:
        """Claim a trial for this driver; return whether no other driver measures it."""
        if self.lease is None:
            return True
        self.storage.record(self.name, [claim_event(number, self.lease.id, finished)])
        events = self.storage.events(self.name)
        if number in read_judged(events):
            return False
        self.lease.look()
        claims = read_claims(events)[number]
        return next(d for d in claims if not self.lease.has_gone(d)) == self.lease.id


def is_judged(plan: Plan) -> bool:
    """Return whether a study measures its front on a test split after the search.

    By default it does so if any of its evaluators has a test split.
    """
    return plan.judge != "none" and has_test_split(plan.pipeline)


def check_test_split(plan: Plan) -> None:
    """Raise StudyError if no evaluator of the study has a test split."""
    if not has_test_split(plan.pipeline):
        names = ", ".join(sorted({one.name for one in plan.pipeline.bound}))
        raise StudyError(
            f"no evaluator of {plan.name!r} has a test split (it has: {names})",
            hint="compression.recipe has one with 'split: search', its default; another evaluator "
            "can have one with a method test_evaluator",
        )
