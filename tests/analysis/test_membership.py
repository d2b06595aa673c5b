"""How sure places on the front are, against probabilities that are known."""

from __future__ import annotations

from statistics import NormalDist

import pytest

from dse.analysis.front_probability import in_doubt, membership
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Limit, Objective
from dse.core.parameter import Integer
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.report.text.trial_tables import doubt_words

SPACE = DesignSpace(parameters=(Integer(name="x", low=0, high=9),))
SOURCES = {
    name: Source(metric=Metric(name=name), kind="measured", reads=frozenset({"x"})) for name in "fg"
}


def problem_of(*texts: str, limits: tuple[Limit, ...] = ()) -> Problem:
    objectives = tuple(Objective(expression=parse(text), goal="minimize") for text in texts)
    return Problem(space=SPACE, sources=SOURCES, objectives=objectives, limits=limits)


def trial_of(number: int, f: float, g: float = 0.0, /, **spread: float) -> Trial:
    return Trial(
        number=number,
        design=Design({"x": number}),
        state=State.DONE,
        metrics={"f": f, "g": g},
        spread=spread,
    )


def test_the_better_of_two_is_the_better_with_the_probability_of_the_normal_difference():
    trials = [trial_of(0, 1.0, f=0.3), trial_of(1, 1.5, f=0.4)]
    chance = NormalDist(mu=0.5, sigma=0.5).cdf(0.0)  # of the difference: 0.3^2 + 0.4^2 = 0.5^2
    found = membership(problem_of("f"), trials)
    # four standard errors of a thousand draws
    assert found[1] == pytest.approx(chance, abs=4 * (chance * (1 - chance) / 1000) ** 0.5)
    assert found[0] + found[1] == pytest.approx(1.0)


def test_a_limit_is_kept_with_its_own_probability():
    limit = Limit(text="g <= 1", slack=parse("1 - g"))
    trials = [trial_of(0, 1.0, 1.2, g=0.4)]
    chance = NormalDist(mu=1.2, sigma=0.4).cdf(1.0)
    found = membership(problem_of("f", limits=(limit,)), trials)
    assert found[0] == pytest.approx(chance, abs=4 * (chance * (1 - chance) / 1000) ** 0.5)


def test_what_is_far_apart_is_sure():
    trials = [
        trial_of(0, 1.0, 3.0, f=0.01),
        trial_of(1, 2.0, 1.0, f=0.01),
        trial_of(2, 5.0, 5.0, f=0.01),
    ]
    assert membership(problem_of("f", "g"), trials) == {0: 1.0, 1: 1.0, 2: 0.0}
    assert in_doubt({0: 1.0, 1: 1.0, 2: 0.0}) == {}


def test_the_error_of_a_compound_objective_comes_from_its_metrics():
    trials = [trial_of(0, 1.0, 1.0, f=1.0), trial_of(1, 1.0, 1.0)]
    found = membership(problem_of("f * 2 + g"), trials)
    assert found[0] == pytest.approx(0.5, abs=4 * 0.5 / 1000**0.5)


def test_without_errors_nothing_is_told():
    found = membership(problem_of("f"), [trial_of(0, 1.0), trial_of(1, 2.0)])
    assert found == {}
    assert doubt_words(found) == ""


def test_what_is_in_doubt_is_told_the_surest_first():
    words = doubt_words({3: 0.3, 4: 0.99, 5: 0.6, 6: 0.01})
    assert words.endswith("trial 5 (60 %), trial 3 (30 %)")
