"""Contract tests of :class:`dse.protocols.Optimizer`, which plug-ins' tests inherit."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dse.core.expressions.parser import parse
from dse.core.metric import Failure
from dse.core.problem import Problem
from dse.core.trial import Event, Outcome, State, Trial
from dse.optimizers.support.unseen_designs import fresh
from dse.protocols import Optimizer
from dse.testing.known import Known
from dse.testing.problems import pocket_codesign

Make = Callable[[Problem], Optimizer]

_FINISHED = 12


class OptimizerContract:
    """Contract tests of optimizers: inherit, and override the fixture ``make``.

    The fixture ``known`` may be overridden by a problem with more than twenty legal designs. The
    finished trials that the optimizer receives include designs that satisfy or violate limits, an
    infeasible design and a failed one.
    """

    @pytest.fixture
    def make(self) -> Make:
        """Return the factory that builds the optimizer for a problem."""
        raise NotImplementedError

    @pytest.fixture
    def known(self) -> Known:
        """Return the problem that the optimizer has to solve."""
        return pocket_codesign()

    @pytest.fixture
    def history(self, known: Known) -> list[Trial]:
        """Return finished trials of all kinds: feasible, infeasible, failed."""
        designs = fresh(known.problem.space, _FINISHED, np.random.default_rng(5), ())
        trials = known.finished(designs)
        return [*trials[:-2], _crash_trial(trials[-2]), _impossible(trials[-1])]

    def test_given_the_same_it_asks_the_same(
        self, make: Make, known: Known, history: list[Trial]
    ) -> None:
        one, other = make(known.problem), make(known.problem)
        one.tell(history)
        other.tell(history)
        assert one.ask(2) == other.ask(2)

    def test_however_the_telling_was_cut_it_asks_the_same(
        self, make: Make, known: Known, history: list[Trial]
    ) -> None:
        one, other = make(known.problem), make(known.problem)
        one.tell(history)
        other.tell(history[:2])
        other.ask(1, [history[2].design])
        other.tell([])
        other.tell(history[2:3])
        other.tell(history[3:])
        assert one.ask(1) == other.ask(1)

    def test_asking_changes_nothing(self, make: Make, known: Known, history: list[Trial]) -> None:
        optimizer = make(known.problem)
        optimizer.tell(history)
        first = optimizer.ask(1)
        optimizer.ask(2, first)
        assert optimizer.ask(1) == first

    def test_what_it_asks_is_legal(self, make: Make, known: Known, history: list[Trial]) -> None:
        optimizer = make(known.problem)
        early = optimizer.ask(5)
        optimizer.tell(history)
        assert all(design in known.problem.space for design in early + optimizer.ask(3))

    def test_what_it_asks_is_neither_finished_nor_pending_nor_asked_twice(
        self, make: Make, known: Known, history: list[Trial]
    ) -> None:
        optimizer = make(known.problem)
        earlier = [trial.design for trial in history]
        pending = fresh(known.problem.space, 3, np.random.default_rng(6), earlier)
        optimizer.tell(history)
        asked = optimizer.ask(3, pending)
        assert len({*earlier, *pending, *asked}) == len(earlier) + 3 + 3

    def test_it_asks_as_many_as_are_wanted_while_there_are_enough(
        self, make: Make, known: Known
    ) -> None:
        optimizer = make(known.problem)
        assert [len(set(optimizer.ask(count))) for count in (1, 4, 20)] == [1, 4, 20]

    def test_it_draws_only_from_the_problem(
        self, make: Make, known: Known, history: list[Trial]
    ) -> None:
        optimizer = make(known.problem)
        optimizer.tell(history)
        _disturb(1)
        first = optimizer.ask(1)
        _disturb(2)
        assert optimizer.ask(1) == first

    def test_it_leaves_the_global_generators_as_they_were(
        self, make: Make, known: Known, history: list[Trial]
    ) -> None:
        optimizer = make(known.problem)
        optimizer.tell(history)
        _disturb(3)
        optimizer.ask(1)
        after = random.random(), np.random.random()  # noqa: S311, NPY002 - these are tested
        _disturb(3)
        assert after == (random.random(), np.random.random())  # noqa: S311, NPY002

    def test_a_history_of_nothing_but_faults_does_not_stop_it(
        self, make: Make, known: Known, history: list[Trial]
    ) -> None:
        optimizer = make(known.problem)
        optimizer.tell([_crash_trial(trial) for trial in history[::2]])
        optimizer.tell([_impossible(trial) for trial in history[1::2]])
        assert optimizer.ask(1)[0] not in [trial.design for trial in history]

    def test_its_events_are_reported_once(
        self, make: Make, known: Known, history: list[Trial]
    ) -> None:
        optimizer = make(known.problem)
        optimizer.tell(history)
        optimizer.ask(1)
        first = optimizer.events()
        assert all(isinstance(event, Event) for event in first)
        assert optimizer.events() == []


class FiniteOptimizerContract(OptimizerContract):
    """Further contract tests for a countable space, which ``known`` has to have."""

    def test_none_means_that_nothing_is_left(self, make: Make, known: Known) -> None:
        total = known.problem.space.count() or 0
        designs = fresh(known.problem.space, total, np.random.default_rng(7), ())
        optimizer = make(known.problem)
        optimizer.tell(known.finished(designs[:-3]))
        assert set(optimizer.ask(2, designs[-1:])) == set(designs[-3:-1])
        optimizer.tell(known.finished(designs[-3:-1], total - 3))
        assert optimizer.ask(5) == designs[-1:]
        optimizer.tell(known.finished(designs[-1:], total - 1))
        assert optimizer.ask(5) == []

    def test_an_empty_space_is_no_trouble(self, make: Make, known: Known) -> None:
        empty = replace(known.problem.space, constraints=(parse("1 == 2"),))
        assert make(replace(known.problem, space=empty)).ask(3) == []


def _crash_trial(trial: Trial) -> Trial:
    failure = Failure(kind="crashed", reason="the worker died")
    return replace(trial, state=State.PENDING).finished(
        Outcome(state=State.FAILED, failure=failure)
    )


def _impossible(trial: Trial) -> Trial:
    failure = Failure(kind="infeasible", reason="it cannot exist")
    return replace(trial, state=State.PENDING).finished(
        Outcome(state=State.INFEASIBLE, failure=failure)
    )


def _disturb(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - these are what an optimizer must not draw from
