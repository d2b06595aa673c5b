"""Who goes on and who is stopped follows from what was reported before, and from nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.objective import Limit
from dse.core.parameter import Integer
from dse.core.space import DesignSpace
from dse.core.trial import Report, State, Trial
from dse.evaluation.early_stopping import (
    Certain,
    Halving,
    decide,
    rank_rows,
    runs,
)
from dse.protocols import OptimizerTraits
from dse.study.asking import teachable
from dse.testing.known import problem_of
from dse.testing.strategies import losses

SPACE = DesignSpace(parameters=(Integer(name="x", low=0, high=99),))
DESIGNS = [Design({"x": x}) for x in range(100)]
BOTH = {"loss": "minimize", "time": "minimize"}


def problem(objectives, kinds=None, limits=()):
    return problem_of(
        SPACE, kinds or dict.fromkeys(objectives, "measured"), objectives, None, limits=limits
    )


ONE, TWO = problem({"loss": "minimize"}), problem(BOTH)


def told(number, step, attempt=0, **metrics):
    return Report(number=number, step=step, attempt=attempt, metrics=metrics)


def stops(rule, asked, *reports, finished=()):
    return bool(decide(rule, asked, DESIGNS, reports, finished))


def at_one(*values):
    """The reports of one trial after another at step 1."""
    return [told(number, 1, loss=value) for number, value in enumerate(values)]


HALVING = Halving(eta=3, at=(1,))


@pytest.mark.parametrize(
    ("values", "stopped"),
    [
        ([5], False),
        ([5, 6], True),
        ([5, 4], False),
        ([5, 6, 7, 8, 9, 5.5], False),
        ([5, 6, 7, 8, 9, 6.5], True),
        ([1, 2, 3, 4, 5, 6, 7, 8, 2.5], False),
        ([1, 2, 3, 4, 5, 6, 7, 8, 3.5], True),
    ],
)
def test_one_in_eta_of_those_at_a_rung_goes_on(values, stopped):
    assert stops(HALVING, ONE, *at_one(*values)) == stopped


def test_a_metric_that_is_maximised_is_the_better_the_larger():
    up = problem({"loss": "maximize"})
    assert stops(HALVING, up, *at_one(5, 4))
    assert not stops(HALVING, up, *at_one(5, 6))


def test_between_rungs_nothing_is_decided():
    reports = [told(0, 3, loss=1.0), told(1, 2, loss=9.0)]
    assert not stops(Halving(at=(3,)), ONE, *reports)
    assert stops(Halving(at=(3,)), ONE, *reports, told(1, 3, loss=9.0))
    assert not stops(Halving(at=(3,)), ONE, *reports, told(1, 3, loss=0.5), told(1, 4, loss=9.0))


def test_a_rung_is_reached_with_the_first_report_beyond_it():
    assert stops(Halving(at=(3,)), ONE, told(0, 10, loss=1.0), told(1, 5, loss=9.0))


def test_what_nothing_dominates_is_never_stopped():
    trade_offs = [told(n, 1, loss=float(n), time=float(9 - n)) for n in range(9)]
    decided = [stops(HALVING, TWO, *trade_offs[: place + 1]) for place in range(9)]
    assert decided == [False] * 9


def test_what_is_dominated_is_stopped_where_enough_are_better():
    reports = [told(0, 1, loss=1.0, time=1.0), told(1, 1, loss=2.0, time=2.0)]
    assert stops(HALVING, TWO, *reports)
    assert "1 of 2 are better" in decide(HALVING, TWO, DESIGNS, reports)


def test_limits_come_before_objectives():
    limit = Limit(text="loss >= 3", slack=parse("loss - 3"))
    bound = problem({"time": "minimize"}, {"time": "measured", "loss": "measured"}, [limit])
    within, beyond = told(0, 1, time=9.0, loss=4.0), told(1, 1, time=1.0, loss=1.0)
    assert stops(HALVING, bound, within, beyond)
    assert not stops(HALVING, bound, beyond, told(0, 1, time=9.0, loss=4.0))


def test_who_does_not_tell_all_that_is_asked_is_not_judged():
    reports = [told(0, 1, loss=1.0, time=1.0), told(1, 1, loss=9.0)]
    assert not stops(HALVING, TWO, *reports)


def test_a_trial_that_was_begun_anew_is_judged_by_its_last_run():
    first = [told(0, 1, loss=5.0), told(1, 1, loss=1.0)]
    assert not stops(HALVING, ONE, *first, told(0, 1, attempt=1, loss=0.5))
    assert stops(HALVING, ONE, *first, told(0, 1, loss=4.0))
    assert runs([*first, told(0, 1, loss=4.0), told(0, 2, loss=4.0), told(0, 3, 1)]) == [
        0,
        0,
        1,
        1,
        2,
    ]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20))
def test_what_comes_later_changes_no_decision(pairs):
    reports = [told(n, 1, loss=float(a), time=float(b)) for n, (a, b) in enumerate(pairs)]
    half = reports[: len(reports) // 2 + 1]
    assert decide(HALVING, TWO, DESIGNS, half) == decide(HALVING, TWO, DESIGNS, list(half))
    assert not stops(HALVING, TWO, reports[0])


@given(losses())
def test_a_rank_holds_every_row_once_and_no_front_before_a_better_one(rows):
    order, first = rank_rows(rows, np.zeros(len(rows)))
    beaten = [(rows <= row).all(axis=1) & (rows < row).any(axis=1) for row in rows]
    place = np.argsort(order)
    assert sorted(order.tolist()) == list(range(len(rows)))
    assert first.tolist() == [not any(others) for others in beaten]
    assert all((place[others] < place[row]).all() for row, others in enumerate(beaten))


def done(number, **metrics):
    return Trial(number=number, design=DESIGNS[number], state=State.DONE, metrics=metrics)


@pytest.mark.parametrize(
    ("rule", "report", "stopped"),
    [
        (Certain(worsens=frozenset({"loss", "time"})), {"loss": 3.0, "time": 3.0}, True),
        (Certain(worsens=frozenset({"loss", "time"})), {"loss": 3.0, "time": 1.0}, False),
        (Certain(worsens=frozenset({"loss", "time"})), {"loss": 2.0, "time": 2.0}, False),
        (Certain(worsens=frozenset({"time"})), {"loss": 3.0, "time": 3.0}, False),
        (Certain(worsens=frozenset({"time"}), best={"loss": 2.5}), {"time": 2.5}, True),
        (Certain(worsens=frozenset({"time"}), best={"loss": 0.0}), {"time": 2.5}, False),
    ],
)
def test_only_what_cannot_get_better_than_a_trial_that_is_done_is_stopped(rule, report, stopped):
    finished = [done(0, loss=2.0, time=2.0)]
    assert stops(rule, TWO, told(1, 1, **report), finished=finished) == stopped


def test_without_a_trial_that_is_done_nothing_is_certain():
    rule = Certain(worsens=frozenset({"loss", "time"}))
    failed = Trial(number=0, design=DESIGNS[0], state=State.FAILED, metrics={"loss": 0, "time": 0})
    assert not stops(rule, TWO, told(1, 1, loss=9.0, time=9.0), finished=[failed])


def test_an_expression_of_metrics_is_certain_only_where_they_are():
    mixed = problem({"loss * time": "minimize"}, dict.fromkeys(BOTH, "measured"))
    rule = Certain(worsens=frozenset(BOTH))
    finished = [done(0, loss=2.0, time=2.0)]
    assert not stops(rule, mixed, told(1, 1, loss=3.0, time=3.0), finished=finished)


@given(
    st.lists(st.floats(0.1, 5), min_size=3, max_size=6),
    st.lists(st.floats(0.1, 9), min_size=2, max_size=2),
)
def test_what_was_stopped_for_certain_would_have_been_dominated(grows, finished):
    rule = Certain(worsens=frozenset({"loss", "time"}))
    best = done(0, loss=finished[0], time=finished[1])
    path = np.cumsum(grows)
    reports = [told(1, n, loss=value, time=value) for n, value in enumerate(path.tolist())]
    stopped = [stops(rule, TWO, one, finished=[best]) for one in reports]
    assert not any(stopped) or (path[-1] >= finished[0] and path[-1] >= finished[1])


def test_optimizers_learn_of_a_stopped_trial_only_that_it_gave_nothing():
    stopped = Trial(number=0, design=DESIGNS[0], state=State.STOPPED, metrics={"loss": 0.1})
    (learnt,) = teachable(OptimizerTraits(), [stopped])
    assert (learnt.design, learnt.state, learnt.metrics) == (DESIGNS[0], State.FAILED, {})
    assert teachable(OptimizerTraits(), [done(1, loss=1.0)]) == [done(1, loss=1.0)]
