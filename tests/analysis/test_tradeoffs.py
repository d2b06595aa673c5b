"""Exchange rates, limits that bind, and what moves an objective."""

import time
from dataclasses import replace

import numpy as np
import pytest

from dse.analysis.importance import importances
from dse.analysis.limits import activities
from dse.analysis.model_speed import quick
from dse.analysis.trade_rates import rates
from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric, Metrics
from dse.core.objective import Limit, Objective
from dse.core.parameter import Choice, Ordinal, Real
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, State, Trial

NAMES = ("a", "b")
SPACE = DesignSpace(
    parameters=(Ordinal(name="x", values=tuple(range(64))), Real(name="y", low=0, high=1))
)


def problem(kind: str = "measured", *, limits: tuple[Limit, ...] = (), model=None) -> Problem:
    sources = {
        name: Source(metric=Metric(name=name), kind=kind, reads=frozenset({"x", "y"}))
        for name in NAMES
    }
    objectives = tuple(Objective(expression=parse(name), goal="minimize") for name in NAMES)
    told = {} if model is None else {"model": model}
    return Problem(space=SPACE, sources=sources, objectives=objectives, limits=limits, **told)


def done(number: int, a: float, b: float) -> Trial:
    design = Design({"x": number, "y": 0.5})
    outcome = Outcome(state=State.DONE, metrics={"a": a, "b": b}, cost_s=0.0, measured=1)
    return Trial(number=number, design=design).finished(outcome)


TRIALS = [done(0, 4, 1), done(1, 3, 2), done(2, 2, 4), done(3, 1, 10), done(4, 4, 4)]


def test_a_rate_is_what_the_second_objective_pays_for_the_first():
    first, *_, last = rates(ParetoSet.of(problem(), TRIALS))
    assert (first.gain, first.price, first.each) == (1, 1, 1)
    assert (last.start.number, last.end.number, last.each) == (2, 3, 6)


def test_rates_get_dearer_along_a_convex_front():
    told = [rate.each for rate in rates(ParetoSet.of(problem(), TRIALS))]
    assert told == sorted(told)


@pytest.mark.parametrize("count", [0, 1])
def test_without_a_step_there_is_no_rate(count: int):
    assert rates(ParetoSet.of(problem(), TRIALS[:count])) == []


def limit(bound: float) -> Limit:
    return Limit(text=f"b <= {bound}", slack=parse(f"{bound} - b"), scale=bound)


def test_a_limit_tells_whom_it_alone_rules_out_and_what_giving_way_buys():
    (told,) = activities(problem(limits=(limit(3.8),)), TRIALS)
    assert (told.broken, told.alone, told.near) == (3, 3, 0)
    assert [(one.now, one.then, one.trial.number) for one in told.looser] == [(3, 2, 2)]
    assert [(one.now, one.then, one.trial.number) for one in told.without] == [(3, 1, 3)]


def test_a_design_at_its_limit_counts_as_near():
    (told,) = activities(problem(limits=(limit(4),)), TRIALS)
    assert told.near == 2


def test_a_design_that_breaks_two_limits_is_ruled_out_by_neither_alone():
    both = activities(problem(limits=(limit(5), limit(6))), TRIALS)
    assert [one.alone for one in both] == [0, 0]
    assert [one.broken for one in both] == [1, 1]


def test_what_giving_way_buys_is_unknown_where_nobody_keeps_the_limits():
    (told,) = activities(problem(limits=(limit(0.5),)), TRIALS)
    assert told.without == ()


def model(batch: Batch) -> Metrics:
    x = np.asarray(batch["x"], dtype=np.float64)
    return Metrics(columns={"a": 3 * x + 0 * batch["y"], "b": x * 0 + 7.0})


def test_a_modelled_objective_is_learnt_from_uniform_designs_whatever_was_tried():
    (told,) = importances(problem("modelled", model=model), TRIALS)
    assert told.fresh
    assert told.explained > 0.99
    assert told.shares[0][0] == "x"
    assert told.shares[0][1] == pytest.approx(1, abs=0.1)
    assert told.shares[1][1] < 0.01


def test_a_slow_model_is_not_asked_for_two_thousand_designs():
    def slow(batch: Batch) -> Metrics:
        time.sleep(0.01 * len(batch))
        return model(batch)

    assert not quick(problem("modelled", model=slow), 2_000, 5.0)
    assert importances(problem("modelled", model=slow), TRIALS) == []


def test_a_quick_model_is_asked_for_millions():
    assert quick(problem("modelled", model=model), 1_000_000, 10.0)


def test_a_slice_follows_what_the_objective_does():
    (told,) = importances(problem("modelled", model=model), TRIALS)
    along = told.slices[0]
    assert list(along.means) == sorted(along.means)
    assert (along.lows <= along.means).all()
    assert along.means == pytest.approx([3 * value for value in along.values], abs=12)


def test_a_constant_objective_and_too_few_trials_tell_nothing():
    assert importances(problem(), TRIALS) == []


def test_a_word_and_an_absent_parameter_are_learnt_from():
    words = Choice(name="kind", values=("plain", "gated"))
    width = Ordinal(name="x", values=tuple(range(16)))
    space = DesignSpace(parameters=(words, width), conditions={"x": parse("kind == 'gated'")})

    def priced(batch: Batch) -> Metrics:
        gated = ~batch.absent("x")
        price = np.where(gated, 10.0 + np.asarray(batch.get("x", 0), dtype=np.float64), 0.0)
        return Metrics(columns={"a": price, "b": price})

    one, _ = importances(replace(problem("modelled", model=priced), space=space), [])
    assert {name for name, share in one.shares if share > 0.01} <= {"kind", "x"}
    assert one.explained > 0.95
